package controller

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// strand binds the claim of alpha's cache to a node that does not exist, and replaces its pod with
// a pending one.
func (l *landscape) strand(t *testing.T) (claim, pod client.Object) {
	t.Helper()
	name := v1alpha3.Name(alpha)
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
			Namespace: bound.Namespace, Name: name + "-0", Labels: map[string]string{v1alpha3.LabelUpstreamHost: v1alpha3.HostLabel(alpha)},
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

// TestStrandedVolume checks that a cache starts empty after its volume was lost with its node, but
// not while the shoot is hibernated or has no node of a worker pool.
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
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := []string{"shoot write *v1.PersistentVolumeClaim", "shoot write *v1.Pod"}
	if got := w.writes(); !slices.Equal(got, want) || there() {
		t.Errorf("writes %q, want %q", got, want)
	}
	w.requests = nil
	if err := l.reconcile(t); err != nil || len(w.writes()) > 0 {
		t.Errorf("the next reconciliation writes %q, error %v", w.writes(), err)
	}
}

// TestStrandedVolumeThatStays checks that a claim that cannot be deleted is an error, so that it is
// retried.
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
