package controller

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// inPhase sets the phase of the claim of alpha's cache.
func (l *landscape) inPhase(t *testing.T, phase corev1.PersistentVolumeClaimPhase) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "cache-volume-" + idOf(alpha).Name + "-0"}
	if err := l.shoot.Get(t.Context(), key, claim); err != nil {
		t.Fatal(err)
	}
	claim.Status.Phase = phase
	if err := l.shoot.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// claimSizes maps the claims of alpha's cache to their requested sizes.
func (l *landscape) claimSizes(t *testing.T) map[string]string {
	t.Helper()
	claims, sizes := &corev1.PersistentVolumeClaimList{}, map[string]string{}
	if err := l.shoot.List(t.Context(), claims, client.MatchingLabels{v1alpha3.LabelUpstreamHost: idOf(alpha).HostLabel}); err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims.Items {
		size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		sizes[strings.TrimPrefix(claim.Name, "cache-volume-"+idOf(alpha).Name)] = size.String()
	}
	return sizes
}

func (l *landscape) assertSizes(t *testing.T, when string, want map[string]string) {
	t.Helper()
	if got := l.claimSizes(t); !maps.Equal(got, want) {
		t.Errorf("%s, the claims are %v, want %v", when, got, want)
	}
}

func (l *landscape) setOfAlpha(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := l.shoot.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: idOf(alpha).Name}, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// TestVolumeGrows checks that a claim grows, and that the StatefulSet does not change.
func TestVolumeGrows(t *testing.T) {
	l, w := newRunningLandscape(t, sized("20Gi"))
	l.reconciled(t)
	l.assertSizes(t, "after the growth", map[string]string{"-0": "20Gi"})
	if got := l.summary(t); !strings.Contains(got, "applied alpha.upstream.test of 20Gi") || !strings.Contains(got, "claim cache-volume-registry-beta-upstream-test-0 of 10Gi") {
		t.Errorf("the result is\n%s", got)
	}
	if slices.Contains(w.requests, "shoot write *v1.StatefulSet") {
		t.Errorf("the StatefulSet was written:\n%s", strings.Join(w.requests, "\n"))
	}
	if request := l.setOfAlpha(t).Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]; request.String() != "10Gi" {
		t.Errorf("gardener-resource-manager has changed the template to %s", request.String())
	}
}

// TestVolumeThatKeepsItsSize checks that a volume that cannot grow causes no failure: all other
// changes are made, and the volume grows once it can. Any size can follow.
func TestVolumeThatKeepsItsSize(t *testing.T) {
	for name, test := range map[string]struct {
		fixed bool
		phase corev1.PersistentVolumeClaimPhase
	}{
		"the StorageClass does not allow it": {true, corev1.ClaimBound},
		"it is not bound yet":                {false, corev1.ClaimPending},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newRunningLandscape(t, sized("20Gi"))
			told := l.recordEvents()
			l.fixed = test.fixed
			l.inPhase(t, test.phase)
			l.configure(t, func(c *v1alpha3.RegistryConfig) {
				c.Caches = append(c.Caches, v1alpha3.RegistryCache{Upstream: "gamma.upstream.test"})
			})
			l.reconciled(t)
			l.assertSizes(t, "at first", map[string]string{"-0": "10Gi"})
			if got := l.summary(t); !strings.Contains(got, "gamma.upstream.test by http") {
				t.Errorf("the result is\n%s", got)
			}
			l.configure(t, sized("5Gi"))
			l.reconciled(t)
			l.configure(t, sized("15Gi"))
			l.fixed = false
			l.inPhase(t, corev1.ClaimBound)
			l.reconciled(t)
			l.assertSizes(t, "after the fix", map[string]string{"-0": "15Gi"})
			want := []string{"Normal VolumeGrowing cache of alpha.upstream.test: claim cache-volume-registry-alpha-upstream-test-0 grows to 15Gi"}
			if test.fixed {
				want = append([]string{"Warning VolumeNotGrown cache of alpha.upstream.test: grow claim"}, want...)
			}
			assertEvents(t, told, want...)
		})
	}
}

// TestSmallerSize checks that a volume keeps its size if a smaller one is configured.
func TestSmallerSize(t *testing.T) {
	l, w := newRunningLandscape(t, sized("5Gi"))
	l.reconciled(t)
	l.assertSizes(t, "with 5Gi", map[string]string{"-0": "10Gi"})
	if slices.Contains(w.requests, "shoot write *v1.PersistentVolumeClaim") {
		t.Errorf("the claim was written:\n%s", strings.Join(w.requests, "\n"))
	}
}

// TestLaterClaims checks that a claim that the StatefulSet creates with its old size also grows,
// and that the claim of the second replica is deleted with the replica.
func TestLaterClaims(t *testing.T) {
	replicated := func(enabled bool) func(*v1alpha3.RegistryConfig) {
		return func(c *v1alpha3.RegistryConfig) {
			c.Caches[0].HighAvailability = &v1alpha3.HighAvailability{Enabled: enabled}
		}
	}
	l, _ := newRunningLandscape(t, sized("20Gi"))
	l.reconciled(t)
	l.configure(t, replicated(true))
	l.reconciled(t)
	l.reconciled(t)
	l.assertSizes(t, "with two replicas", map[string]string{"-0": "20Gi", "-1": "20Gi"})
	l.changeShoot(t, hibernated)
	l.configure(t, replicated(false))
	l.reconciled(t)
	l.assertSizes(t, "while hibernated", map[string]string{"-0": "20Gi", "-1": "20Gi"})
	l.changeShoot(t)
	l.reconciled(t)
	l.assertSizes(t, "with one replica", map[string]string{"-0": "20Gi"})
	set := l.setOfAlpha(t)
	set.Spec.Replicas = ptr.To[int32](0)
	if err := l.shoot.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	l.reconciled(t)
	l.assertSizes(t, "scaled to 0", map[string]string{"-0": "20Gi"})
}

// TestGrowthWithoutAnswer checks that any other error of the shoot fails the attempt, so that it is
// retried.
func TestGrowthWithoutAnswer(t *testing.T) {
	l, w := newRunningLandscape(t, sized("20Gi"))
	w.fail = func(number int, done bool) error {
		if !done && w.requests[number-1] == "shoot write *v1.PersistentVolumeClaim" {
			return errLost
		}
		return nil
	}
	if err := l.reconcile(t); !errors.Is(err, errLost) {
		t.Errorf("error = %v", err)
	}
}

// strand binds the claim of alpha's cache to a node that does not exist, and replaces its pod with
// a pending one.
func (l *landscape) strand(t *testing.T) (claim, pod client.Object) {
	t.Helper()
	name := idOf(alpha).Name
	bound := &corev1.PersistentVolumeClaim{}
	if err := l.shoot.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "cache-volume-" + name + "-0"}, bound); err != nil {
		t.Fatal(err)
	}
	bound.UID, bound.Spec.VolumeName = "claim", "on-a-disk"
	if err := l.shoot.Update(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	gone := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"gone"}}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: bound.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{UID: bound.UID},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{gone}}},
			}},
		},
	}
	waiting := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: bound.Namespace, Name: name + "-0", Labels: map[string]string{v1alpha3.LabelApp: idOf(alpha).Name, v1alpha3.LabelUpstreamHost: idOf(alpha).HostLabel},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: name, Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: bound.Name},
		}}}},
	}
	if err := l.shoot.Delete(t.Context(), waiting.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{volume, waiting} {
		if err := l.shoot.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return bound, waiting
}

// join adds a node of a worker pool to the shoot.
func (l *landscape) join(t *testing.T) {
	t.Helper()
	ready := worker("worker-2", true)
	ready.Labels = map[string]string{"worker.gardener.cloud/pool": "local", corev1.LabelHostname: ready.Name}
	if err := l.shoot.Create(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
}

// TestStrandedVolume checks that a cache starts empty after its volume was lost with its node. The
// old claim is kept while the shoot is hibernated or has no worker nodes.
func TestStrandedVolume(t *testing.T) {
	l, w := newRunningLandscape(t, nil)
	claim, pod := l.strand(t)
	there := func() bool {
		return l.shoot.Get(t.Context(), client.ObjectKeyFromObject(claim), claim) == nil && l.shoot.Get(t.Context(), client.ObjectKeyFromObject(pod), pod) == nil
	}
	if err := l.reconcile(t); err != nil || !there() {
		t.Errorf("without a node of a worker pool, the claim exists: %t, error %v", there(), err)
	}
	l.join(t)
	l.changeShoot(t, hibernated)
	if err := l.reconcile(t); err != nil || !there() {
		t.Errorf("while hibernated, the claim exists: %t, error %v", there(), err)
	}
	l.changeShoot(t)
	w.requests = nil
	told := l.recordEvents()
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	assertEvents(t, told, "Warning VolumeReplaced cache of alpha.upstream.test: claim "+claim.GetName()+" was deleted")
	want := []string{"shoot write *v1.PersistentVolumeClaim", "shoot write *v1.Pod"}
	if got := w.writes(); !slices.Equal(got, want) || there() {
		t.Errorf("writes %q, want %q", got, want)
	}
	w.requests = nil
	if err := l.reconcile(t); err != nil || len(w.writes()) > 0 {
		t.Errorf("the next reconciliation writes %q, error %v", w.writes(), err)
	}
}

// TestStrandedVolumeThatStays checks that Reconcile returns an error if a claim cannot be deleted.
func TestStrandedVolumeThatStays(t *testing.T) {
	l, w := newRunningLandscape(t, nil)
	l.strand(t)
	l.join(t)
	w.fail = func(number int, done bool) error {
		if !done && strings.HasPrefix(w.requests[number-1], "shoot write") {
			return errLost
		}
		return nil
	}
	if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), "whose node is gone") {
		t.Errorf("error = %v", err)
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
