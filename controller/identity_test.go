package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// idOf returns the identity of an upstream's cache if no other cache has the same name.
func idOf(upstream string) v1alpha3.Identity {
	return v1alpha3.Identify([]v1alpha3.RegistryCache{{Upstream: upstream}}, nil)[0]
}

// objectsIn returns the kinds and names of the objects in a ManagedResource, without the hash of
// their content.
func (l *landscape) objectsIn(t *testing.T, name string) []string {
	t.Helper()
	objects, err := managedresources.GetObjects(t.Context(), l.seed, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		name := object.GetName()
		if _, isSecret := object.(*corev1.Secret); isSecret {
			name = name[:strings.LastIndex(name, "-")]
		}
		names = append(names, fmt.Sprintf("%T %s", object, name))
	}
	slices.Sort(names)
	return names
}

// names returns the names of the StatefulSets in the shoot, by upstream.
func (l *landscape) names(t *testing.T) map[string]string {
	t.Helper()
	services := &corev1.ServiceList{}
	if err := l.shoot.List(t.Context(), services); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, service := range services.Items {
		set := &appsv1.StatefulSet{}
		key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: service.Spec.Selector["app"]}
		if err := l.shoot.Get(t.Context(), key, set); err != nil {
			t.Fatal(err)
		}
		names[service.Annotations["upstream"]] = set.Name
	}
	return names
}

func addFirst(upstream string) func(*v1alpha3.RegistryConfig) {
	return func(c *v1alpha3.RegistryConfig) {
		c.Caches = slices.Insert(c.Caches, 0, v1alpha3.RegistryCache{Upstream: upstream, HTTP: &v1alpha3.HTTP{}})
	}
}

// TestCollidingNames: a cache never gets the name of another one, whose volume may still exist. It
// keeps its own name when the other one is gone.
func TestCollidingNames(t *testing.T) {
	const dashed, hashed = "registry-a-b-c", "registry-a-b-c-ab8bb"
	remove := func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[:1] }
	replace := func(c *v1alpha3.RegistryConfig) { addFirst("a.b-c")(c); remove(c) }
	l := newLandscape(t, newExtension([]string{"a-b.c"}, nil), cluster())
	for _, step := range []struct {
		change func(*v1alpha3.RegistryConfig)
		want   map[string]string
	}{
		{nil, map[string]string{"a-b.c": dashed}},
		{addFirst("a.b-c"), map[string]string{"a-b.c": dashed, "a.b-c": hashed}},
		{remove, map[string]string{"a.b-c": hashed}},
		{nil, map[string]string{"a.b-c": hashed}},
		{addFirst("a-b.c"), map[string]string{"a.b-c": hashed, "a-b.c": dashed}},
		{remove, map[string]string{"a-b.c": dashed}},
		{replace, map[string]string{"a.b-c": hashed}},
	} {
		if step.change != nil {
			l.configure(t, step.change)
		}
		l.reconciled(t)
		if got := l.names(t); fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("got %v, want %v", got, step.want)
		}
	}
}

// TestInterruptedNames: caches of an attempt that was interrupted before it wrote the endpoints
// keep their names, even if the config changes before the next attempt.
func TestInterruptedNames(t *testing.T) {
	for name, running := range map[string]bool{"first caches": false, "further cache": true} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
			if running {
				l.reconciled(t)
			}
			l.configure(t, addFirst("a-b.c"))
			w := l.tap()
			w.fail = func(number int, _ bool) error {
				if w.requests[number-1] == "seed write Extension" && slices.Contains(w.requests, "seed write ManagedResource") {
					return errLost
				}
				return nil
			}
			if err := l.reconcile(t); err == nil {
				t.Fatal("no error although the status was not written")
			}
			w.fail = nil
			l.configure(t, addFirst("a.b-c"))
			l.reconciled(t)
			if got := l.names(t); got["a-b.c"] != "registry-a-b-c" || got["a.b-c"] != "registry-a-b-c-ab8bb" {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestLostStatus: an Extension that was restored without its status finds the names of the running
// caches.
func TestLostStatus(t *testing.T) {
	l := newLandscape(t, newExtension([]string{"a-b.c"}, nil), cluster())
	l.reconciled(t)
	l.configure(t, addFirst("a.b-c"))
	ex := l.extension(t)
	ex.Status.ProviderStatus, ex.Status.State = nil, nil
	if err := l.seed.Status().Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	l.reconciled(t)
	if got := l.names(t); got["a-b.c"] != "registry-a-b-c" || got["a.b-c"] != "registry-a-b-c-ab8bb" {
		t.Errorf("got %v", got)
	}
}

// TestReplacedAfterInterruption: a cache does not get the name of the cache that it replaces,
// whenever the replacement is interrupted.
func TestReplacedAfterInterruption(t *testing.T) {
	replace := func(c *v1alpha3.RegistryConfig) {
		c.Caches = []v1alpha3.RegistryCache{{Upstream: "a.b-c", HTTP: &v1alpha3.HTTP{}}}
	}
	prepare := func() (*landscape, *wire) {
		l := newLandscape(t, newExtension([]string{"a-b.c"}, nil), cluster())
		l.reconciled(t)
		l.configure(t, replace)
		return l, l.tap()
	}
	l, w := prepare()
	l.reconciled(t)
	for _, at := range points(w.requests) {
		for how, arm := range breakAt(at, w.requests[at-1]) {
			l, w := prepare()
			ctx, cancel := context.WithCancel(t.Context())
			arm(w, cancel)
			_ = l.actuator.Reconcile(ctx, logr.Discard(), l.extension(t)) // no error if a poll repeats the lost request
			cancel()
			w.fail = nil
			l.reconciled(t)
			if got := l.names(t)["a.b-c"]; got != "registry-a-b-c-ab8bb" {
				t.Errorf("%s at request %d, %s: the name is %s", how, at, w.requests[at-1], got)
			}
		}
	}
}

// newEarly returns a landscape with the cache of an early version, which had another name, all
// objects in one ManagedResource, and no CA bundle in its status.
func newEarly(t *testing.T, old v1alpha3.Identity) *landscape {
	t.Helper()
	ex := newExtension([]string{alpha, old.Upstream}, []string{old.Upstream})
	ex.Status.ProviderStatus.Raw = []byte(strings.Replace(string(ex.Status.ProviderStatus.Raw), `"caBundle":""`, `"other":""`, 1))
	l := newLandscape(t, ex, cluster())
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: old.Upstream, HTTP: &v1alpha3.HTTP{}}}}
	v1alpha3.SetDefaults(config)
	deployed, err := cache.Objects(config.Caches[0], old, cache.Shoot{Image: "old"}, cache.Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	services, err := cache.Services(config.Caches[0], old, cache.Shoot{KubernetesVersion: "1.34.2"})
	if err != nil {
		t.Fatal(err)
	}
	err = apply(t.Context(), l.seed, namespace, cachesName, shootEncoder, append(services, deployed...), func(c client.Client) *builder.ManagedResource {
		return managedresources.NewForShoot(c, namespace, cachesName, origin, false).DeletePersistentVolumeClaims(true)
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestUpgrade checks that the caches of an early version keep their names, volumes and addresses,
// wherever the first attempt ends.
func TestUpgrade(t *testing.T) {
	old := v1alpha3.Identity{Upstream: "old.test:5000", Name: "registry-old-test-5000--01234567", HostLabel: "old.test_5000"}
	upgrade := func(when string, l *landscape, attempts int) {
		before := l.services(t)[old.Name]
		for range attempts {
			l.reconciled(t)
			if got := l.names(t); got[old.Upstream] != old.Name || got[alpha] != "registry-alpha-upstream-test" {
				t.Errorf("%s: the names are %v", when, got)
			}
			if now := l.services(t)[old.Name]; now != before || now == "" {
				t.Errorf("%s: the address was %s and is %s", when, before, now)
			}
		}
		if in := l.objectsIn(t, cachesName); slices.ContainsFunc(in, func(o string) bool { return strings.Contains(o, "Service") }) {
			t.Errorf("%s: the Services still are in ManagedResource %s: %v", when, cachesName, in)
		}
	}
	l := newEarly(t, old)
	w := l.tap()
	upgrade("without an interruption", l, 2)
	for i, request := range w.requests {
		if !strings.Contains(request, " write ") {
			continue
		}
		l := newEarly(t, old)
		l.tap().fail = func(number int, done bool) error {
			if number == i+1 && !done {
				return errLost
			}
			return nil
		}
		_ = l.reconcile(t)
		l.restart()
		upgrade(fmt.Sprintf("before request %d, %s", i+1, request), l, 2)
	}
}

// TestNamesOfLeavingCaches: a removed cache keeps its name until its objects are deleted, even if
// another cache is added in between.
func TestNamesOfLeavingCaches(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha, "a-b.c"}, nil), cluster())
	l.reconciled(t)
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[:1] })
	w, written := l.tap(), 0
	w.fail = func(number int, _ bool) error {
		if w.requests[number-1] == "seed write ManagedResource" && !slices.Contains(upstreamsOf(l.extension(t)), "a-b.c") {
			written++
		}
		if written > 1 { // the Services are written, the other objects are not
			return errLost
		}
		return nil
	}
	if err := l.reconcile(t); err == nil {
		t.Fatal("no error although the objects were not written")
	}
	w.fail = nil
	l.configure(t, addFirst("a.b-c"))
	l.reconciled(t)
	if got := l.names(t)["a.b-c"]; got != "registry-a-b-c-ab8bb" {
		t.Errorf("the name is %s", got)
	}
}

// TestNewCacheDoesNotWait: a new cache has its endpoint although a removed one cannot be deleted
// yet.
func TestNewCacheDoesNotWait(t *testing.T) {
	for name, secure := range map[string]bool{"http": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			l, _ := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) {
				c.Caches = append(c.Caches[:1], v1alpha3.RegistryCache{Upstream: "gamma.upstream.test", HTTP: &v1alpha3.HTTP{TLS: secure}})
			})
			set := &appsv1.StatefulSet{}
			if err := l.shoot.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "registry-beta-upstream-test"}, set); err != nil {
				t.Fatal(err)
			}
			set.Finalizers = []string{"test/stays"}
			if err := l.shoot.Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			l.reconciled(t)
			if got := upstreamsOf(l.extension(t)); !slices.Equal(got, []string{alpha, "gamma.upstream.test"}) {
				t.Errorf("status has %v", got)
			}
			if l.services(t)["registry-beta-upstream-test"] != "" {
				t.Error("the Service of the removed cache is still there")
			}
		})
	}
}

// TestRestoreWhileHibernated: the next seed deploys all objects of a hibernated shoot, whether it
// knows the addresses of the caches or not. Omitted objects would never be deleted.
func TestRestoreWhileHibernated(t *testing.T) {
	for name, forget := range map[string]bool{"addresses known": false, "addresses unknown": true} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension([]string{alpha, beta}, nil), cluster())
			l.configure(t, withTLS(true))
			l.reconciled(t)
			want, certificate := l.objectsIn(t, cachesName), l.deployedCertificate(t)
			l.changeShoot(t, hibernated)
			l.restored(t, forget)
			if got := l.objectsIn(t, cachesName); !slices.Equal(got, want) {
				t.Errorf("ManagedResource %s has\n  %s\nwant\n  %s", cachesName, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			}
			if same := l.deployedCertificate(t).Equal(certificate); same == forget {
				t.Errorf("the certificate is unchanged: %t", same)
			}
			l.changeShoot(t)
			l.reconciled(t)
			l.assertTrusted(t)
			l.changeShoot(t, deleting)
			if err := l.delete(t); err != nil {
				t.Fatal(err)
			}
			claims := &corev1.PersistentVolumeClaimList{}
			if err := l.shoot.List(t.Context(), claims); err != nil || len(claims.Items)+len(l.services(t)) > 0 {
				t.Errorf("the shoot still has %d claims and the Services %v, error %v", len(claims.Items), l.services(t), err)
			}
		})
	}
}

// restored moves the control plane of a hibernated shoot to another seed: the ManagedResources are
// new, and only status.state is kept. If forget is set, it lacks the addresses. Before a migration,
// gardenlet starts the gardener-resource-manager of a hibernated shoot.
func (l *landscape) restored(t *testing.T, forget bool) {
	t.Helper()
	l.changeShoot(t)
	if err := l.actuator.Migrate(t.Context(), logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	l.changeShoot(t, hibernated)
	ex := l.extension(t)
	ex.Status.ProviderStatus = nil
	if forget {
		state, err := v1alpha3.DecodeState(ex.Status.State)
		if err != nil {
			t.Fatal(err)
		}
		for i := range state.Running {
			state.Running[i].Address = ""
		}
		ex.Status.State.Raw = encode(state)
	}
	if err := l.seed.Status().Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	if err := l.actuator.Restore(t.Context(), logr.Discard(), ex); err != nil {
		t.Fatal(err)
	}
}
