package diagnostics

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func object(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace("shoot--local--local")
	o.SetName(name)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "noise"}})
	return o
}

func fakeCluster(objects ...runtime.Object) (Source, *dynamicfake.FakeDynamicClient) {
	kinds := map[schema.GroupVersionResource]string{}
	for _, resource := range resources {
		kinds[resource] = "List"
	}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	typed := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "registry-a-0"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "registry", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "e"}, Reason: "Killing", Message: "bye",
	})
	return clusterSource("shoot", func() (clients, error) { return clients{dynamic, typed}, nil }), dynamic
}

func TestCluster(t *testing.T) {
	source, _ := fakeCluster(
		object("extensions.gardener.cloud/v1alpha1", "Extension", "registry-cache", map[string]any{"spec": map[string]any{"type": "registry-cache"}}),
		object("v1", "Secret", "credentials", map[string]any{"data": map[string]any{"password": "aHVudGVyMg=="}}),
	)
	dir := t.TempDir()
	if err := Collect(t.Context(), dir, source); err != nil {
		t.Error(err)
	}
	extensions := read(t, dir, "shoot", "objects", "extensions.yaml")
	contains(t, extensions, "name: registry-cache\n", "type: registry-cache\n")
	if strings.Contains(extensions, "managedFields") {
		t.Error("managed fields were kept")
	}
	secrets := read(t, dir, "shoot", "objects", "secrets.yaml")
	contains(t, secrets, "name: credentials", "password: (12 characters left out)")
	if strings.Contains(secrets, "aHVudGVyMg") {
		t.Error("the data of a Secret was written")
	}
	contains(t, read(t, dir, "shoot", "logs", "kube-system", "registry-a-0", "registry.log"), "fake logs")
	contains(t, read(t, dir, "shoot", "events.txt"), "Killing", "bye")
}

func TestClusterContinuesAfterFailures(t *testing.T) {
	source, dynamic := fakeCluster(object("v1", "Service", "registry-a", nil))
	dynamic.PrependReactor("list", "extensions", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("webhook is down")
	})
	dir := t.TempDir()
	err := Collect(t.Context(), dir, source)
	if err == nil || err.Error() != "shoot/objects/extensions.yaml: webhook is down" {
		t.Errorf("error %v", err)
	}
	contains(t, read(t, dir, "shoot", "objects", "services.yaml"), "registry-a")
}

func TestClusterUnreachable(t *testing.T) {
	source := clusterSource("seed", func() (clients, error) { return clients{}, errors.New("no kubeconfig") })
	if err := Collect(t.Context(), t.TempDir(), source); err == nil || err.Error() != "seed: no kubeconfig" {
		t.Errorf("error %v", err)
	}
}
