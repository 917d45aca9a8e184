package controller

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// alphaClaim returns the claim of alpha's cache after the changes.
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

// TestManuallyGrownClaim checks that going back to the previous size is not rejected as shrinking.
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

// TestGrowthBeyondTheQuota checks that everything else is done, and that the error contains that of
// the API server.
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
