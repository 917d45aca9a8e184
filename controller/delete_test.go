package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

func TestDelete(t *testing.T) {
	for name, test := range map[string]struct {
		running []string
		state   string
		shoot   []func(*gardencorev1beta1.Shoot)
		before  []string
		log     []string
	}{
		"disabled": {
			running: []string{alpha, beta},
			before:  []string{servicesName, cachesName},
			log: []string{
				"apply extension-registry-cleaner", "delete extension-registry-cleaner", "status []",
				"delete extension-registry-cache", "delete extension-registry-cache-services",
			},
		},
		"disabled before any cache had an endpoint": {
			before: []string{servicesName, cachesName},
			log:    []string{"delete extension-registry-cache", "delete extension-registry-cache-services"},
		},
		"disabled without ever having a cache": {
			running: []string{},
		},
		"disabled when no cache was left": {
			running: []string{},
			state:   `{"cleanUps":1}`,
			before:  []string{servicesName, cachesName},
			log: []string{
				"apply extension-registry-cleaner", "delete extension-registry-cleaner", "status []",
				"delete extension-registry-cache", "delete extension-registry-cache-services",
			},
		},
		"shoot deleted": {
			running: []string{alpha, beta},
			shoot:   []func(*gardencorev1beta1.Shoot){deleting},
			before:  []string{servicesName, cachesName},
			log:     []string{"delete extension-registry-cache", "delete extension-registry-cache-services"},
		},
		"shoot deleted while the cleaner ran": {
			running: []string{alpha, beta},
			shoot:   []func(*gardencorev1beta1.Shoot){deleting},
			before:  []string{servicesName, cachesName, cleanerName},
			log:     []string{"delete extension-registry-cleaner", "delete extension-registry-cache", "delete extension-registry-cache-services"},
		},
		"shoot deleted while hibernated": {
			running: []string{alpha},
			shoot:   []func(*gardencorev1beta1.Shoot){hibernated, deleting},
			before:  []string{servicesName, cachesName},
			log:     []string{"delete extension-registry-cache", "delete extension-registry-cache-services"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ex := newExtension([]string{alpha, beta}, test.running)
			if test.state != "" {
				ex.Status.State = &runtime.RawExtension{Raw: []byte(test.state)}
			}
			l := newLandscape(t, ex, cluster(test.shoot...))
			for _, name := range test.before {
				if err := l.seed.Create(t.Context(), managedResource(name)); err != nil {
					t.Fatal(err)
				}
			}
			l.log = nil
			if err := l.delete(t); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(l.log, test.log) {
				t.Errorf("writes:\n  %s\nwant:\n  %s", strings.Join(l.log, "\n  "), strings.Join(test.log, "\n  "))
			}
			for _, name := range []string{cleanerName, cachesName, servicesName} {
				if l.exists(t, name) {
					t.Errorf("ManagedResource %s is still there", name)
				}
			}
			l.log = nil
			if err := l.delete(t); err != nil || len(l.log) > 0 && len(test.running) > 0 && len(test.shoot) == 0 {
				t.Errorf("the second time: error %v, writes %v", err, l.log)
			}
		})
	}
}

// TestDeleteCleansEverything checks that the cleaner runs with --all. Without it, the hosts.toml of
// an upstream that the status does not contain would remain.
func TestDeleteCleansEverything(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, []string{alpha}), cluster(), managedResource(cachesName))
	l.noCleaner = "ImagePullBackOff"
	if err := l.delete(t); err == nil {
		t.Fatal("no error although the cleaner never ran")
	}
	if !l.exists(t, cachesName) {
		t.Error("the caches are gone although the nodes were not cleaned")
	}
	objects, err := managedresources.GetObjects(t.Context(), l.seed, namespace, cleanerName)
	if err != nil {
		t.Fatal(err)
	}
	set, ok := objects[0].(*appsv1.DaemonSet)
	if !ok {
		t.Fatalf("the cleaner is a %T", objects[0])
	}
	if args := set.Spec.Template.Spec.InitContainers[0].Args; !slices.Contains(args, "--all") {
		t.Errorf("the cleaner runs with %v", args)
	}
}

func TestDeleteWaits(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster(), managedResource(cachesName, "test/stays"))
	if err := l.delete(t); err == nil || !strings.Contains(err.Error(), cachesName) {
		t.Errorf("error = %v, want it to name %s", err, cachesName)
	}
}

// TestDeleteWithUndecodableStatus checks a status that was edited or written by a newer version.
// The nodes are cleaned once.
func TestDeleteWithUndecodableStatus(t *testing.T) {
	for name, damage := range map[string]func(*extensionsv1alpha1.ExtensionStatus){
		"providerStatus": func(s *extensionsv1alpha1.ExtensionStatus) {
			s.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"kind":"Other"}`)}
		},
		"state": func(s *extensionsv1alpha1.ExtensionStatus) {
			s.State = &runtime.RawExtension{Raw: []byte(`{"caches":1}`)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ex := newExtension([]string{alpha}, []string{alpha})
			damage(&ex.Status)
			l := newLandscape(t, ex, cluster(), managedResource(cachesName, "test/stays"))
			if err := l.delete(t); err == nil || !strings.Contains(err.Error(), cachesName) {
				t.Errorf("error = %v, want it to name %s, which stays", err, cachesName)
			}
			l.log = nil
			if err := l.delete(t); err == nil || slices.Contains(l.log, "apply "+cleanerName) {
				t.Errorf("the retry: error = %v, writes %q", err, l.log)
			}
		})
	}
}

// TestForceDeleteWaitsForNothing checks that ForceDelete succeeds while ManagedResources remain.
func TestForceDeleteWaitsForNothing(t *testing.T) {
	ex := newExtension([]string{alpha}, []string{alpha})
	l := newLandscape(t, ex, managedResource(servicesName, "test/stays"), managedResource(cachesName, "test/stays"), managedResource(cleanerName, "test/stays"))
	if err := l.actuator.ForceDelete(t.Context(), logr.Discard(), ex); err != nil {
		t.Fatal(err)
	}
	if want := []string{"delete extension-registry-cleaner", "delete extension-registry-cache", "delete extension-registry-cache-services"}; !slices.Equal(l.log, want) {
		t.Errorf("writes = %v, want %v", l.log, want)
	}
}

func TestMigrateKeepsTheCaches(t *testing.T) {
	ex := newExtension([]string{alpha}, []string{alpha})
	l := newLandscape(t, ex, cluster(), managedResource(servicesName), managedResource(cachesName), managedResource(cleanerName))
	if err := l.actuator.Migrate(t.Context(), logr.Discard(), ex); err != nil {
		t.Fatal(err)
	}
	want := []string{"patch extension-registry-cache keepObjects=true", "patch extension-registry-cache-services keepObjects=true",
		"delete extension-registry-cleaner", "delete extension-registry-cache", "delete extension-registry-cache-services"}
	if !slices.Equal(l.log, want) {
		t.Errorf("writes = %v, want %v", l.log, want)
	}
}

func TestRestoreReconciles(t *testing.T) {
	ex := newExtension([]string{alpha}, nil)
	l := newLandscape(t, ex, cluster())
	if err := l.actuator.Restore(t.Context(), logr.Discard(), ex); err != nil {
		t.Fatal(err)
	}
	if got := upstreamsOf(l.extension(t)); !slices.Equal(got, []string{alpha}) {
		t.Errorf("status has %v", got)
	}
}

// TestDisableWhileHibernated checks that the deletion does not wait for objects that nothing
// removes before the shoot wakes up.
func TestDisableWhileHibernated(t *testing.T) {
	l, _ := newRunningLandscape(t, nil)
	l.changeShoot(t, hibernated)
	l.actuator.waits.patience = 10 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := l.actuator.Delete(ctx, logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{cachesName, servicesName} {
		mr, err := l.actuator.managedResource(t.Context(), namespace, name)
		if err != nil || mr.DeletionTimestamp == nil || l.exists(t, monitoringName) {
			t.Errorf("ManagedResource %v, error %v; that of the seed is there: %t", mr, err, l.exists(t, monitoringName))
		}
	}
	l.changeShoot(t)
	if l.exists(t, cachesName) || l.exists(t, servicesName) || len(l.services(t)) > 0 {
		t.Error("after waking up, the caches still exist")
	}
}

// TestEnabledAgainWhileHibernated: a ManagedResource that is still being deleted is not written,
// because the content would be lost.
func TestEnabledAgainWhileHibernated(t *testing.T) {
	l, _ := newRunningLandscape(t, nil)
	l.changeShoot(t, hibernated)
	if err := l.delete(t); err != nil {
		t.Fatal(err)
	}
	ex := l.extension(t)
	ex.Status = extensionsv1alpha1.ExtensionStatus{}
	if err := l.seed.Status().Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	l.reconciled(t)
	withFinalizers := func(change func([]string) []string) {
		t.Helper()
		mr, err := l.actuator.managedResource(t.Context(), namespace, cachesName)
		if err != nil {
			t.Fatal(err)
		}
		mr.Finalizers = change(mr.Finalizers)
		if err := l.unwatched.Update(t.Context(), mr); err != nil {
			t.Fatal(err)
		}
	}
	withFinalizers(func(now []string) []string { return append(now, "a/b") })
	l.changeShoot(t)
	if err := l.reconcile(t); !retry.IsWaiting(err) {
		t.Errorf("while it is being deleted: %v", err)
	}
	withFinalizers(func([]string) []string { return nil })
	l.reconciled(t)
	if mr, err := l.actuator.managedResource(t.Context(), namespace, cachesName); err != nil || mr.DeletionTimestamp != nil {
		t.Errorf("ManagedResource %v, error %v", mr, err)
	}
}

// TestForeignService checks that a Service of the owner is neither taken over nor deleted.
func TestForeignService(t *testing.T) {
	l, _ := newRunningLandscape(t, renamed(ptr.To("mine")))
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "registry-mine"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.99", Selector: map[string]string{"app": "foreign"}},
	}
	if err := l.shoot.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	assertConfigurationError(t, l.reconcile(t), "caches["+alpha+"]", "kube-system/registry-mine")
	l.configure(t, renamed(nil))
	l.reconciled(t)
	if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.Spec.Selector["app"] != "foreign" {
		t.Errorf("the Service selects %v, error %v", foreign.Spec.Selector, err)
	}
}

// TestForeignServiceWhileHibernated checks that an owner's Service is not deleted if a cache is
// configured with its name while the shoot is hibernated.
func TestForeignServiceWhileHibernated(t *testing.T) {
	for name, then := range map[string]func(*testing.T, *landscape){
		"disabled": func(t *testing.T, l *landscape) {
			if err := l.delete(t); err != nil {
				t.Fatal(err)
			}
			l.changeShoot(t)
		},
		"renamed back": func(t *testing.T, l *landscape) {
			l.configure(t, renamed(nil))
			l.reconciled(t)
			l.changeShoot(t)
			l.reconciled(t)
			l.later(2 * time.Hour)
			l.reconciled(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newRunningLandscape(t, nil)
			foreign := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "registry-one"},
				Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "theirs"}},
			}
			if err := l.shoot.Create(t.Context(), foreign); err != nil {
				t.Fatal(err)
			}
			l.changeShoot(t, hibernated)
			l.configure(t, renamed(new("one")))
			l.reconciled(t)
			then(t, l)
			if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.Spec.Selector["app"] != "theirs" {
				t.Errorf("the Service selects %v, error %v", foreign.Spec.Selector, err)
			}
		})
	}
}

// TestDisableAfterGuardedRemoval checks that the claim of a removed cache is deleted once a policy
// of the shoot allows it, although the extension was disabled in the meantime.
func TestDisableAfterGuardedRemoval(t *testing.T) {
	l, _ := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	l.guarded = true
	l.reconciled(t)
	if list := l.inShoot(t); !slices.Contains(list, "claim/"+claimOf(alpha).Name) {
		t.Errorf("the policy keeps no claim: %q", list)
	}
	l.changeShoot(t, hibernated)
	l.reconciled(t)
	if err := l.delete(t); err != nil {
		t.Fatal(err)
	}
	l.guarded = false
	l.changeShoot(t)
	l.assertInShoot(t, "in the end")
}

// TestHibernationWithCleaner checks that a leftover cleaner blocks nothing.
func TestHibernationWithCleaner(t *testing.T) {
	l, _ := newRunningLandscape(t, nil)
	l.changeShoot(t, hibernated)
	if err := l.seed.Create(t.Context(), managedResource(cleanerName, managerFinalizer)); err != nil {
		t.Fatal(err)
	}
	if err := l.reconcile(t); err != nil || !l.exists(t, cleanerName) {
		t.Fatalf("the cleaner is there: %t, error %v", l.exists(t, cleanerName), err)
	}
	l.changeShoot(t)
	if err := l.reconcile(t); err != nil || l.exists(t, cleanerName) {
		t.Errorf("after waking up, the cleaner exists: %t, error %v", l.exists(t, cleanerName), err)
	}
}
