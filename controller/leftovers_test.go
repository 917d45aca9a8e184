package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// migrated moves the control plane to another seed, and changes the config before the restoration.
func (l *landscape) migrated(t *testing.T, change func(*v1alpha3.RegistryConfig)) {
	t.Helper()
	if err := l.actuator.Migrate(t.Context(), logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	l.configure(t, change)
	ex := l.extension(t)
	ex.Status.ProviderStatus = nil
	if err := l.seed.Status().Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	if err := l.actuator.Restore(t.Context(), logr.Discard(), ex); err != nil {
		t.Fatal(err)
	}
}

// inShoot lists the objects of the caches in the shoot, as <kind>/<name>.
func (l *landscape) inShoot(t *testing.T) []string {
	t.Helper()
	var found []string
	for kind, list := range map[string]client.ObjectList{
		"StatefulSet": &appsv1.StatefulSetList{}, "Service": &corev1.ServiceList{}, "claim": &corev1.PersistentVolumeClaimList{},
		"budget": &policyv1.PodDisruptionBudgetList{}, "policy": &networkingv1.NetworkPolicyList{},
	} {
		if err := l.shoot.List(t.Context(), list, client.InNamespace(metav1.NamespaceSystem)); err != nil {
			t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(object runtime.Object) error {
			found = append(found, kind+"/"+object.(client.Object).GetName()) //nolint:forcetypeassert // all are
			return nil
		})
	}
	slices.Sort(found)
	return found
}

// assertInShoot checks that the shoot contains exactly the objects of new caches of the upstreams.
func (l *landscape) assertInShoot(t *testing.T, when string, upstreams ...string) {
	t.Helper()
	var want []string
	if len(upstreams) > 0 {
		fresh := newLandscape(t, newExtension(upstreams, nil), cluster())
		fresh.reconciled(t)
		want = fresh.inShoot(t)
	}
	if got := l.inShoot(t); !slices.Equal(got, want) {
		t.Errorf("%s, the shoot has\n%q\nwant\n%q", when, got, want)
	}
}

func highlyAvailable(on bool) func(*v1alpha3.RegistryConfig) {
	return func(c *v1alpha3.RegistryConfig) {
		c.Caches[0].HighAvailability = &v1alpha3.HighAvailability{Enabled: on}
	}
}

// TestLeftoversOfAnotherSeed checks that nothing is left of a cache that was removed, or a second
// replica that was switched off, while the control plane moved.
func TestLeftoversOfAnotherSeed(t *testing.T) {
	l := newLandscape(t, newExtension([]string{beta, alpha}, nil), cluster())
	l.configure(t, highlyAvailable(true))
	l.reconciled(t)
	l.migrated(t, func(c *v1alpha3.RegistryConfig) {
		c.Caches = c.Caches[:1]
		highlyAvailable(false)(c)
	})
	l.assertInShoot(t, "after the migration", beta)
	set := &appsv1.StatefulSet{}
	if err := l.shoot.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: idOf(beta).Name}, set); err != nil {
		t.Fatal(err)
	}
	if labels := set.Labels; labels[resourcesv1alpha1.HighAvailabilityConfigType] != "" || *set.Spec.Replicas != 1 {
		t.Errorf("the StatefulSet has %d replicas and labels %v", *set.Spec.Replicas, labels)
	}
}

// TestLeftoversAfterFailure checks that a failed deletion is retried.
func TestLeftoversAfterFailure(t *testing.T) {
	l := newLandscape(t, newExtension([]string{beta, alpha}, nil), cluster())
	l.reconciled(t)
	failed := false
	shoot := interceptor.NewClient(l.shoot, interceptor.Funcs{
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteAllOfOption) error {
			if _, isService := object.(*corev1.Service); isService && !failed {
				failed = true
				return apierrors.NewServiceUnavailable("etcd")
			}
			return c.DeleteAllOf(ctx, object, options...)
		},
	})
	l.actuator.shootClient = func(context.Context, string) (client.Client, error) { return shoot, nil }
	if err := l.actuator.Migrate(t.Context(), logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[:1] })
	if err := l.reconcile(t); err == nil {
		t.Error("no error")
	}
	l.reconciled(t)
	if got := l.inShoot(t); slices.ContainsFunc(got, func(o string) bool { return strings.Contains(o, "alpha") }) {
		t.Errorf("objects = %q", got)
	}
}

// TestDisabledAfterMigration checks that Delete also removes objects of the previous seed.
func TestDisabledAfterMigration(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha, beta}, nil), cluster())
	l.reconciled(t)
	if err := l.actuator.Migrate(t.Context(), logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	err := l.delete(t)
	for attempt := 0; retry.IsWaiting(err) && attempt < 3; attempt++ {
		err = l.delete(t)
	}
	if err != nil || len(l.inShoot(t)) > 0 {
		t.Errorf("error %v, objects %q", err, l.inShoot(t))
	}
}

func claimOf(upstream string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: "cache-volume-" + idOf(upstream).Name + "-0",
	}}
}

// holdClaim acts as a pod that uses the claim: a deleted claim exists until the pod is gone.
func (l *landscape) holdClaim(t *testing.T, upstream string) {
	l.protect(t, upstream, "kubernetes.io/pvc-protection")
}

func (l *landscape) freeClaim(t *testing.T, upstream string) { l.protect(t, upstream) }

func (l *landscape) protect(t *testing.T, upstream string, finalizers ...string) {
	t.Helper()
	claim := claimOf(upstream)
	if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = finalizers
	if err := l.shoot.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedDeletion checks that a policy of the shoot that refuses deletions causes no failure.
func TestRefusedDeletion(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	l.configure(t, highlyAvailable(true))
	l.reconciled(t)
	l.configure(t, func(c *v1alpha3.RegistryConfig) {
		highlyAvailable(false)(c)
		c.Caches = append(c.Caches, v1alpha3.RegistryCache{Upstream: beta, HTTP: &v1alpha3.HTTP{}})
	})
	shoot := interceptor.NewClient(l.shoot, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			return apierrors.NewForbidden(corev1.Resource("objects"), object.GetName(), errors.New("admission webhook denied the request"))
		},
	})
	l.actuator.shootClient = func(context.Context, string) (client.Client, error) { return shoot, nil }
	l.reconciled(t)
	if got := upstreamsOf(l.extension(t)); !slices.Equal(got, []string{alpha, beta}) {
		t.Errorf("the status has %v", got)
	}
}

// TestThirdClaim checks that a claim left from three replicas does not end high availability.
func TestThirdClaim(t *testing.T) {
	l, _ := newRunningLandscape(t, highlyAvailable(true))
	l.reconciled(t)
	third := claimOf(alpha)
	if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(third), third); err != nil {
		t.Fatal(err)
	}
	third.Name, third.ResourceVersion = strings.TrimSuffix(third.Name, "0")+"2", ""
	if err := l.shoot.Create(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	l.reconciled(t)
	set := &appsv1.StatefulSet{}
	if err := l.shoot.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: idOf(alpha).Name}, set); err != nil {
		t.Fatal(err)
	}
	if list := l.inShoot(t); *set.Spec.Replicas != 2 || !slices.Contains(list, "budget/"+idOf(alpha).Name) {
		t.Errorf("the cache has %d replicas, the shoot has %q", *set.Spec.Replicas, list)
	}
}
