package controller

import (
	"context"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestRollback checks that a version before 0.1.0 replaces the StatefulSet, and keeps the claim and
// the Service, after the ManagedResources were released as docs/operations.md describes. Without
// this, its StatefulSet cannot be applied.
func TestRollback(t *testing.T) {
	const name = "registry-alpha-upstream-test"
	for _, released := range []bool{false, true} {
		t.Run(fmt.Sprintf("released=%t", released), func(t *testing.T) {
			l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
			l.reconciled(t)
			claim := &corev1.PersistentVolumeClaim{}
			l.getInShoot(t, "cache-volume-"+name+"-0", claim)
			services, uid := l.services(t), claim.UID
			l.manager.TargetClient = withImmutableFields(l.manager.TargetClient.(client.WithWatch))
			if released {
				l.release(t)
			}
			err := l.deployPrevious(t)
			if (err == nil) != released {
				t.Fatalf("got error %v", err)
			}
			set := &appsv1.StatefulSet{}
			l.getInShoot(t, name, set)
			if replaced := set.Spec.ServiceName == name; replaced != released {
				t.Errorf("serviceName is %q", set.Spec.ServiceName)
			}
			if l.getInShoot(t, claim.Name, claim); claim.UID != uid || !maps.Equal(l.services(t), services) {
				t.Errorf("claim %s was %s, Services %v were %v", claim.UID, uid, l.services(t), services)
			}
		})
	}
}

// getInShoot reads an object of a cache.
func (l *landscape) getInShoot(t *testing.T, name string, object client.Object) {
	t.Helper()
	if err := l.shoot.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

// release deletes the ManagedResources of the shoot, but keeps their objects.
func (l *landscape) release(t *testing.T) {
	t.Helper()
	for _, name := range []string{cachesName, servicesName} {
		if err := managedresources.SetKeepObjects(t.Context(), l.seed, namespace, name, true); err != nil {
			t.Fatal(err)
		}
		if err := managedresources.Delete(t.Context(), l.seed, namespace, name, true); err != nil {
			t.Fatal(err)
		}
		if l.exists(t, name) {
			t.Fatalf("ManagedResource %s exists", name)
		}
	}
}

// deployPrevious writes the ManagedResource of a version before 0.1.0. It returns the error of
// gardener-resource-manager's second attempt, because the first one may delete objects.
func (l *landscape) deployPrevious(t *testing.T) error {
	t.Helper()
	text, err := os.ReadFile("../e2e/testdata/upgrade/alpha.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name, secret := managedresources.NewSecret(l.unwatched, namespace, cachesName, map[string][]byte{"alpha.yaml": text}, true)
	if err := secret.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = managedresources.NewForShoot(l.unwatched, namespace, cachesName, origin, false).
		WithSecretRef(name).DeletePersistentVolumeClaims(true).Reconcile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx := logf.IntoContext(t.Context(), logr.Discard())
	for range 2 {
		_, err = l.manager.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: cachesName}})
	}
	return err
}

// withImmutableFields returns a client that does not change the serviceName of a StatefulSet, as an
// API server does.
func withImmutableFields(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			kind := obj.GetObjectKind().GroupVersionKind()
			if kind.Kind == "StatefulSet" {
				current := &unstructured.Unstructured{}
				current.SetGroupVersionKind(kind)
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
					return err
				}
				was, _, _ := unstructured.NestedString(current.Object, "spec", "serviceName")
				now, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "serviceName")
				if was != now {
					return apierrors.NewInvalid(kind.GroupKind(), obj.GetName(), field.ErrorList{field.Forbidden(field.NewPath("spec"), "serviceName")})
				}
			}
			return c.Update(ctx, obj, opts...)
		},
	})
}
