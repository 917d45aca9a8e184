package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
)

// TestCacheKeepsTheShootOfACluster transforms a Cluster as the manager's cache does, and reads the
// Shoot as the library does.
func TestCacheKeepsTheShootOfACluster(t *testing.T) {
	raw := func(kind string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"` + kind + `","metadata":{"name":"x"}}`)}
	}
	seed := raw("Seed")
	cluster := &extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "shoot--a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "gardenlet"}}},
		Spec:       extensionsv1alpha1.ClusterSpec{Shoot: raw("Shoot"), CloudProfile: raw("CloudProfile"), Seed: &seed},
	}
	var transform toolscache.TransformFunc
	for object, options := range cacheOptions().ByObject {
		if _, ok := object.(*extensionsv1alpha1.Cluster); ok {
			transform = options.Transform
		}
	}
	if transform == nil {
		t.Fatal("Clusters are cached without a transform")
	}
	kept, err := transform(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if c := kept.(*extensionsv1alpha1.Cluster); c.ManagedFields != nil || c.Spec.CloudProfile.Raw != nil || c.Spec.Seed != nil {
		t.Errorf("cached too much: %+v", c)
	}
	reader := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(kept.(*extensionsv1alpha1.Cluster)).Build()
	read, err := extensionscontroller.GetCluster(t.Context(), reader, "shoot--a")
	if err != nil || read.Shoot == nil || read.Shoot.Name != "x" {
		t.Errorf("read %+v, error %v", read, err)
	}
}

// TestSchemeKnowsWhatTheCacheNames: the scheme must contain the types in cacheOptions, or creating
// the manager fails.
func TestSchemeKnowsWhatTheCacheNames(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for object := range cacheOptions().ByObject {
		if _, _, err := scheme.ObjectKinds(object); err != nil {
			t.Error(err)
		}
	}
}

func TestCacheDropsManagedFields(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	if _, err := cacheOptions().DefaultTransform(namespace); err != nil || namespace.ManagedFields != nil {
		t.Errorf("cached %v, error %v", namespace.ManagedFields, err)
	}
}
