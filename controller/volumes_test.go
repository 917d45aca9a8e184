package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// alphaClaim makes the changes to the claim of alpha's cache and returns the claim.
func (l *landscape) alphaClaim(t *testing.T, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "cache-volume-" + v1alpha3.Name(alpha) + "-0"}
	if err := l.shoot.Get(t.Context(), key, claim); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(claim)
		if err := l.shoot.Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if err := l.shoot.Status().Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	return claim
}

func asksFor(size string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// TestManuallyGrownClaim enlarges a claim to 15Gi by hand. The Shoot then asks for 20Gi, which
// fails, and again for its old 10Gi. This is not rejected, although 10Gi is less than the claim
// has.
func TestManuallyGrownClaim(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	l.storageClass = "fixed"
	if err := l.shoot.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}); err != nil {
		t.Fatal(err)
	}
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	l.alphaClaim(t, asksFor("15Gi"))
	l.configure(t, sized("20Gi"))
	assertConfigurationError(t, l.reconcile(t), "caches[0].volume.size", v1alpha3.VolumeCannotGrow+" from 15Gi to 20Gi")
	l.configure(t, sized("10Gi"))
	if err := l.reconcile(t); err != nil {
		t.Errorf("going back: %v", err)
	}
}

// TestUnboundClaim checks that a cache without a volume gets one of the new size.
func TestUnboundClaim(t *testing.T) {
	l, _ := newRunningLandscape(t, sized("20Gi"))
	l.alphaClaim(t, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	request := l.alphaClaim(t).Spec.Resources.Requests[corev1.ResourceStorage]
	if request.String() != "20Gi" {
		t.Errorf("the claim asks for %s", request.String())
	}
}

// TestGrowthBeyondTheQuota checks that all other changes are made, and that the error contains the
// API server's error.
func TestGrowthBeyondTheQuota(t *testing.T) {
	l, w := newRunningLandscape(t, sized("20Gi"))
	l.configure(t, func(c *v1alpha3.RegistryConfig) {
		c.Caches = append(c.Caches, v1alpha3.RegistryCache{Upstream: "gamma.upstream.test"})
	})
	quota := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "c", errors.New("exceeded quota: storage"))
	w.fail = func(number int, done bool) error {
		if !done && w.requests[number-1] == "shoot write *v1.PersistentVolumeClaim" {
			return quota
		}
		return nil
	}
	assertConfigurationError(t, l.reconcile(t), "caches[0].volume.size", "exceeded quota: storage", v1alpha3.VolumeCannotGrow+" from 10Gi to 20Gi")
	if got := l.summary(t); !strings.Contains(got, "applied alpha.upstream.test of 10Gi") || !strings.Contains(got, "gamma.upstream.test by http") {
		t.Errorf("the result is\n%s", got)
	}
}

// TestInterruptionBeforeRemoval interrupts a growth at every point in every way, and then removes
// the cache or disables the extension. The result must be the same as after an uninterrupted
// growth.
func TestInterruptionBeforeRemoval(t *testing.T) {
	for name, remove := range map[string]func(*landscape) error{
		"removed": func(l *landscape) error {
			l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
			return l.reconcile(t)
		},
		"disabled": func(l *landscape) error { return l.delete(t) },
	} {
		t.Run(name, func(t *testing.T) {
			l, w := newRunningLandscape(t, sized("20Gi"))
			l.reconciled(t)
			requests := w.requests
			if err := remove(l); err != nil {
				t.Fatal(err)
			}
			want := l.summary(t)
			for _, at := range points(requests) {
				for how, arm := range breakAt(at, requests[at-1]) {
					what := fmt.Sprintf("%s at request %d, %s", how, at, requests[at-1])
					l, w := newRunningLandscape(t, sized("20Gi"))
					ctx, cancel := context.WithCancel(t.Context())
					arm(w, cancel)
					_ = l.actuator.Reconcile(ctx, logr.Discard(), l.extension(t)) // no error if a poll repeats the lost request
					cancel()
					w.fail = nil
					if err := remove(l); err != nil {
						t.Errorf("%s: the removal fails: %v", what, err)
					} else if got := l.summary(t); got != want {
						t.Errorf("%s: the result is\n%s\nwant\n%s", what, got, want)
					}
				}
			}
		})
	}
}

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
