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
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// returned removes alpha's cache and adds it again with another StorageClass.
func returned(t *testing.T, l *landscape, meanwhile func()) {
	t.Helper()
	var saved v1alpha3.RegistryCache
	l.configure(t, func(c *v1alpha3.RegistryConfig) { saved, c.Caches = c.Caches[0], c.Caches[1:] })
	meanwhile()
	l.configure(t, func(c *v1alpha3.RegistryConfig) {
		saved.Volume = &v1alpha3.Volume{StorageClassName: ptr.To("other")}
		c.Caches = append(c.Caches, saved)
	})
}

// TestReturn checks that a cache that is removed and added again starts empty, with the configured
// volume.
func TestReturn(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *landscape){
		"while the shoot is hibernated": func(t *testing.T, l *landscape) {
			l.changeShoot(t, hibernated)
			returned(t, l, func() { l.reconciled(t) })
			l.reconciled(t)
			l.changeShoot(t)
		},
		"before a reconciliation": func(t *testing.T, l *landscape) { returned(t, l, func() {}) },
		"in two reconciliations":  func(t *testing.T, l *landscape) { returned(t, l, func() { l.reconciled(t) }) },
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newRunningLandscape(t, nil)
			key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "cache-volume-" + idOf(alpha).Name + "-0"}
			claim := &corev1.PersistentVolumeClaim{}
			if err := l.shoot.Get(t.Context(), key, claim); err != nil {
				t.Fatal(err)
			}
			claim.Annotations = map[string]string{"content": "old"}
			if err := l.shoot.Update(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			test(t, l)
			l.reconciled(t)
			if err := l.shoot.Get(t.Context(), key, claim); err != nil {
				t.Fatal(err)
			}
			if class := ptr.Deref(claim.Spec.StorageClassName, ""); claim.Annotations["content"] != "" || class != "other" {
				t.Errorf("the claim has content %q and class %q", claim.Annotations["content"], class)
			}
			if got := upstreamsOf(l.extension(t)); !slices.Contains(got, alpha) {
				t.Errorf("the status has %v", got)
			}
		})
	}
}

// TestReturnWaits checks that a cache is not added while a claim of its predecessor exists.
func TestReturnWaits(t *testing.T) {
	l, _ := newRunningLandscape(t, nil)
	l.holdClaim(t, alpha)
	returned(t, l, func() { l.reconciled(t) })
	if err := l.reconcile(t); !retry.IsWaiting(err) || !strings.Contains(err.Error(), "the earlier cache of "+alpha) {
		t.Errorf("error = %v", err)
	}
	l.freeClaim(t, alpha)
	l.reconciled(t)
	if got := upstreamsOf(l.extension(t)); !slices.Contains(got, alpha) {
		t.Errorf("the status has %v", got)
	}
}
