package cachetest

import (
	"slices"
	"testing"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestCaches: an endpoint consists of the scheme in the Extension's status and the Service's
// address.
func TestCaches(t *testing.T) {
	service := func(name, upstream, ip string) corev1.Service {
		return corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha3.AnnotationUpstream: upstream}},
			Spec:       corev1.ServiceSpec{ClusterIP: ip},
		}
	}
	extension := func(kind, status string) extensionsv1alpha1.Extension {
		e := extensionsv1alpha1.Extension{Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: kind}}}
		if status != "" {
			e.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(status)}
		}
		return e
	}
	known := schemes([]extensionsv1alpha1.Extension{
		extension("other", `{"caches":[{"upstream":"new.test","endpoint":"http://10.0.0.1:5000"}]}`),
		extension(v1alpha3.ExtensionType, ""),
		extension(v1alpha3.ExtensionType, `{"caches":[{"upstream":"a.test","endpoint":"https://10.0.0.9:5000"},
			{"upstream":"b.test","endpoint":"http://[fd00::1]:5000"}]}`),
	})
	ready := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "registry-a"}, Status: appsv1.StatefulSetStatus{ReadyReplicas: 1}}
	got := caches([]corev1.Service{
		service("registry-a", "a.test", "10.0.0.1"), service("registry-b", "b.test", "fd00::1"),
		service("registry-new", "new.test", "10.0.0.3"), service("unmanaged", "", "10.0.0.4"),
	}, []appsv1.StatefulSet{ready}, known)
	want := []cacheStatus{
		{"a.test", "https://10.0.0.1:5000", true}, {"b.test", "http://[fd00::1]:5000", false}, {"new.test", "10.0.0.3:5000", false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
