package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// newOriginal returns a landscape as gardener-extension-registry-cache leaves it, with caches of
// alpha and beta. The objects are reconstructed: of those that it deploys, the ones that matter.
func newOriginal(t *testing.T) *landscape {
	t.Helper()
	ex := newExtension([]string{alpha, beta}, []string{alpha, beta})
	ex.Status.ProviderStatus.Raw = []byte(strings.Replace(string(ex.Status.ProviderStatus.Raw), `,"caBundle":""`, "", 1))
	// Ours ran before, with another StorageClass.
	ex.Status.State = &runtime.RawExtension{Raw: encode(v1alpha3.State{RegistryConfig: &v1alpha3.RegistryConfig{
		TypeMeta: typeMeta("RegistryConfig"),
		Caches:   []v1alpha3.RegistryCache{{Upstream: alpha, Volume: &v1alpha3.Volume{StorageClassName: new("other")}}, {Upstream: "gamma.upstream.test"}},
	}})}
	l := newLandscape(t, ex, cluster())
	var services, objects []client.Object
	for _, upstream := range []string{alpha, beta} {
		config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: upstream, HTTP: &v1alpha3.HTTP{}}}}
		v1alpha3.SetDefaults(config)
		all, err := cache.Objects(config.Caches[0], idOf(upstream), cache.Shoot{Image: "original"}, cache.Secrets{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range all {
			if set, ok := object.(*appsv1.StatefulSet); ok {
				set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
				objects = append(objects, set)
			}
		}
		service, err := cache.Service(config.Caches[0], idOf(upstream), cache.Shoot{})
		if err != nil {
			t.Fatal(err)
		}
		services = append(services, service)
	}
	objects = append(objects, &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "gardener.cloud--allow-registry-cache"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "registry-cache"}},
		},
	})
	for name, list := range map[string][]client.Object{servicesName: services, cachesName: objects} {
		err := apply(t.Context(), l.seed, namespace, name, shootEncoder, list, func(c client.Client) *builder.ManagedResource {
			return managedresources.NewForShoot(c, namespace, name, origin, false).DeletePersistentVolumeClaims(name == cachesName)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// TestTakeover checks that the caches of gardener-extension-registry-cache run on, and that a
// NetworkPolicy selects their pods at any time.
func TestTakeover(t *testing.T) {
	l := newOriginal(t)
	services := l.services(t)
	l.cleaned = func(_ string, args []string) { t.Errorf("the nodes are cleaned: %q", args) }
	for range 2 {
		if list := l.inShoot(t); !slices.Contains(list, "policy/gardener.cloud--allow-registry-cache") {
			t.Errorf("the policy of the original is gone: %q", list)
		}
		l.reconciled(t)
		sets := &appsv1.StatefulSetList{}
		if err := l.shoot.List(t.Context(), sets); err != nil {
			t.Fatal(err)
		}
		for _, set := range sets.Items {
			if policy := set.Spec.PodManagementPolicy; policy != appsv1.OrderedReadyPodManagement || set.Spec.Template.Spec.Containers[0].Image != "cache:v1" {
				t.Errorf("%s has policy %s and image %s", set.Name, policy, set.Spec.Template.Spec.Containers[0].Image)
			}
		}
		if len(sets.Items) != 2 {
			t.Errorf("%d StatefulSets", len(sets.Items))
		}
	}
	if list := l.inShoot(t); slices.Contains(list, "policy/gardener.cloud--allow-registry-cache") {
		t.Errorf("after the second reconciliation: %q", list)
	}
	for name, ip := range l.services(t) {
		if services[name] != ip {
			t.Errorf("Service %s has %s, had %s", name, ip, services[name])
		}
	}
}

// TestTakeoverWaits checks that nodes pull through the caches of the original until ours run.
func TestTakeoverWaits(t *testing.T) {
	l := newOriginal(t)
	l.progressing = metav1.Now().Time
	if err := l.reconcile(t); !retry.IsWaiting(err) || !strings.Contains(err.Error(), "not rolled out") {
		t.Errorf("error = %v", err)
	}
	l.progressing = metav1.Time{}.Time
	l.resync(t, cachesName)
	l.reconciled(t)
}

// TestTakeoverWithRemoval checks that the cleaner learns the endpoint of a removed cache, by which
// it finds the hosts.toml of gardener-node-agent.
func TestTakeoverWithRemoval(t *testing.T) {
	l := newOriginal(t)
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	var args []string
	l.cleaned = func(_ string, given []string) { args = given }
	l.reconciled(t)
	if want := "--endpoint=http://10.1.1.1:5000"; !slices.Contains(args, want) {
		t.Errorf("the cleaner gets %q, want %s", args, want)
	}
	if list := l.inShoot(t); slices.Contains(list, "claim/"+claimOf(alpha).Name) {
		t.Errorf("left: %q", list)
	}
}
