package controller

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// services returns the cluster IPs of the Services in the shoot, by name.
func (l *landscape) services(t *testing.T) map[string]string {
	t.Helper()
	list := &corev1.ServiceList{}
	if err := l.shoot.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	ips := map[string]string{}
	for _, service := range list.Items {
		ips[service.Name] = service.Spec.ClusterIP
	}
	return ips
}

func renamed(suffix *string) func(*v1alpha3.RegistryConfig) {
	return func(c *v1alpha3.RegistryConfig) { c.Caches[0].ServiceNameSuffix = suffix }
}

func (l *landscape) reconciled(t *testing.T) {
	t.Helper()
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
}

// TestServiceRename checks that nodes that do not know the new name find the cache at the old
// address.
func TestServiceRename(t *testing.T) {
	l, _ := newRunningLandscape(t, renamed(ptr.To("new")))
	previous := l.services(t)[v1alpha3.Name(alpha)]
	l.reconciled(t)
	services := l.services(t)
	if services[v1alpha3.Name(alpha)] != previous || services["registry-new"] == "" {
		t.Errorf("after the change the Services are %v, want %s at %s too", services, v1alpha3.Name(alpha), previous)
	}
	r, err := recordOf(l.extension(t))
	if err != nil || r.endpoint(alpha) != "http://"+services["registry-new"]+":5000" {
		t.Errorf("the endpoint is %s, the Services are %v, error %v", r.endpoint(alpha), services, err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: v1alpha3.Name(alpha)}}
	if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil || service.Spec.Selector["app"] != v1alpha3.Name(alpha) {
		t.Errorf("the old Service selects %v, error %v", service.Spec.Selector, err)
	}
	l.reconciled(t)
	if services := l.services(t); services[v1alpha3.Name(alpha)] != "" || services["registry-new"] == "" {
		t.Errorf("after the next reconciliation the Services are %v", services)
	}
	l.configure(t, renamed(nil))
	l.reconciled(t)
	l.reconciled(t)
	if services := l.services(t); services[v1alpha3.Name(alpha)] == "" || services["registry-new"] != "" {
		t.Errorf("after renaming it back, the Services are %v", services)
	}
}

// TestServiceRenameWhileHibernated matters because the nodes of a shoot that wakes up may get the
// old address.
func TestServiceRenameWhileHibernated(t *testing.T) {
	l, _ := newRunningLandscape(t, renamed(ptr.To("new")))
	l.changeShoot(t, hibernated)
	l.reconciled(t)
	l.changeShoot(t)
	for _, want := range []bool{true, false} {
		l.reconciled(t)
		if services := l.services(t); (services[v1alpha3.Name(alpha)] != "") != want || services["registry-new"] == "" {
			t.Errorf("after waking up, the Services are %v, want the old one: %t", services, want)
		}
	}
}

// TestServiceRenameThatFails checks that a failed attempt keeps the old Service. It is retried
// immediately, before nodes know the new one.
func TestServiceRenameThatFails(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha, beta}, nil), cluster())
	l.storageClass = "fixed"
	if err := l.shoot.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}); err != nil {
		t.Fatal(err)
	}
	l.reconciled(t)
	l.configure(t, renamed(ptr.To("new")))
	l.configure(t, func(c *v1alpha3.RegistryConfig) {
		c.Caches[1].Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse("20Gi"))}
	})
	for range 3 {
		assertConfigurationError(t, l.reconcile(t), "caches[1].volume.size")
	}
	names := l.services(t)
	if want := []string{v1alpha3.Name(alpha), "registry-new"}; slices.ContainsFunc(want, func(n string) bool { return names[n] == "" }) {
		t.Errorf("the Services are %v", names)
	}
}
