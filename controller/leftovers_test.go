package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
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

// holdClaim lets a pod use the claim, which stays when it is deleted.
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

// TestDeleteWaitsForVolumes checks that Delete waits until the disks are gone, but not for longer
// than two minutes.
func TestDeleteWaitsForVolumes(t *testing.T) {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{
		ClaimRef:                      &corev1.ObjectReference{Namespace: metav1.NamespaceSystem, Name: claimOf(alpha).Name},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
	}}
	local := volume.DeepCopy()
	local.Name, local.Spec.NodeAffinity = "local", &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"gone"}}},
	}}}}
	for name, last := range map[string]func(*testing.T, *landscape){
		"which are deleted": func(t *testing.T, l *landscape) {
			if err := l.shoot.Delete(t.Context(), volume); err != nil {
				t.Fatal(err)
			}
		},
		"which stay": func(_ *testing.T, l *landscape) { l.later(2 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newRunningLandscape(t, nil)
			l.holdClaim(t, alpha)
			l.changeShoot(t, deleting)
			if err := l.delete(t); !retry.IsWaiting(err) || !strings.Contains(err.Error(), claimOf(alpha).Name) {
				t.Errorf("with a claim that stays: error = %v", err)
			}
			l.freeClaim(t, alpha)
			released := volume.DeepCopy()
			released.Status.Phase, released.Status.LastPhaseTransitionTime = corev1.VolumeReleased, ptr.To(metav1.Now())
			for _, v := range []client.Object{released, local.DeepCopy()} {
				if err := l.shoot.Create(t.Context(), v); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.delete(t); !retry.IsWaiting(err) || !strings.Contains(err.Error(), "PersistentVolume disk") {
				t.Errorf("with a volume that stays: error = %v", err)
			}
			last(t, l)
			if err := l.delete(t); err != nil {
				t.Error(err)
			}
		})
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

// TestHibernationWithMistake checks that a mistake does not prevent hibernation, but fails when the
// Shoot wakes up.
func TestHibernationWithMistake(t *testing.T) {
	for name, change := range map[string]func(*v1alpha3.RegistryConfig){
		"missing reference": func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName = ptr.To("gone") },
		"invalid field":     func(c *v1alpha3.RegistryConfig) { c.Caches[0].RemoteURL = ptr.To("ftp://x") },
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newRunningLandscape(t, change)
			before := l.inShoot(t)
			for _, state := range []func(*gardencorev1beta1.Shoot){hibernating, hibernated} {
				l.changeShoot(t, state)
				l.reconciled(t)
			}
			condition := v1beta1helper.GetCondition(l.extension(t).Status.Conditions, v1alpha3.ConditionConfigurationValid)
			if condition == nil || condition.Status != gardencorev1beta1.ConditionFalse {
				t.Errorf("the condition is %v", condition)
			}
			l.changeShoot(t)
			assertConfigurationError(t, l.reconcile(t))
			if after := l.inShoot(t); !slices.Equal(before, after) {
				t.Errorf("the shoot has %q, had %q", after, before)
			}
			l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName, c.Caches[0].RemoteURL = nil, nil })
			l.reconciled(t)
			condition = v1beta1helper.GetCondition(l.extension(t).Status.Conditions, v1alpha3.ConditionConfigurationValid)
			if condition == nil || condition.Status != gardencorev1beta1.ConditionTrue {
				t.Errorf("after the correction, the condition is %v", condition)
			}
		})
	}
}

// TestOutdatedCopy checks that an outdated copy of a Secret is not taken for a mistake.
func TestOutdatedCopy(t *testing.T) {
	shoot := func(s *gardencorev1beta1.Shoot) {
		s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "login"}}
		s.Spec.Resources[0].ResourceRef.APIVersion, s.Spec.Resources[0].ResourceRef.Kind, s.Spec.Resources[0].ResourceRef.Name = "v1", "Secret", "login"
	}
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ref-login"}} // without a password
	copies := managedResource("referenced-resources")
	copies.Generation, copies.Status.ObservedGeneration = 2, 1
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster(shoot), old, copies)
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName = ptr.To("login") })
	if err := l.reconcile(t); !retry.IsWaiting(err) || v1beta1helper.ExtractErrorCodes(err) != nil {
		t.Errorf("error = %v", err)
	}
	// Something else cannot be copied.
	copies.Status.Conditions = []gardencorev1beta1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: gardencorev1beta1.ConditionFalse}}
	if err := l.unwatched.Status().Update(t.Context(), copies); err != nil {
		t.Fatal(err)
	}
	assertConfigurationError(t, l.reconcile(t), "caches[0].secretReferenceName")
}

// TestOldCleanerSecret checks that the Secret of an earlier clean-up does not make the next one
// skip nodes at once.
func TestOldCleanerSecret(t *testing.T) {
	l, _ := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	set := cleaner.DaemonSet(cleaner.Task{Upstreams: []string{alpha}}, "cleaner:v1")
	data, err := encodeManifests(shootEncoder, []client.Object{set})
	if err != nil {
		t.Fatal(err)
	}
	name, secret := managedresources.NewSecret(l.unwatched, namespace, cleanerName, data, true)
	if err := secret.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := &corev1.Secret{}
	if err := l.unwatched.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, old); err != nil {
		t.Fatal(err)
	}
	old.CreationTimestamp = metav1.NewTime(time.Now().Add(-5 * time.Minute))
	if err := l.unwatched.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	l.behind, l.applyError, l.refusedKind = true, "not yet", "DaemonSet"
	if err := l.reconcile(t); !retry.IsWaiting(err) {
		t.Errorf("error = %v, conditions %v", err, l.extension(t).Status.Conditions)
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
