package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/extensions"
)

// managerFinalizer is the finalizer that gardener-resource-manager removes when the objects are
// gone.
const managerFinalizer = "resources.gardener.cloud/gardener-resource-manager"

// ignores returns whether no gardener-resource-manager handles the ManagedResource. gardenlet
// scales down that of a hibernated shoot. That of the seed keeps running.
func (l *landscape) ignores(ctx context.Context, seed client.Client, name string) bool {
	cluster := &extensionsv1alpha1.Cluster{}
	if err := seed.Get(ctx, client.ObjectKey{Name: namespace}, cluster); err != nil || name == monitoringName {
		return false
	}
	shoot, err := extensions.ShootFromCluster(cluster)
	return err == nil && shoot.DeletionTimestamp == nil && extensionscontroller.IsHibernated(&extensionscontroller.Cluster{Shoot: shoot})
}

// deleted acts as gardener-resource-manager when a ManagedResource is deleted.
func (l *landscape) deleted(ctx context.Context, seed client.Client, mr *resourcesv1alpha1.ManagedResource, opts ...client.DeleteOption) error {
	if err := seed.Get(ctx, client.ObjectKeyFromObject(mr), mr); err != nil {
		return err
	}
	if l.ignores(ctx, seed, mr.Name) {
		mr.Finalizers = append(mr.Finalizers, managerFinalizer)
		if err := seed.Update(ctx, mr); err != nil {
			return err
		}
	} else if mr.Name == cleanerName {
		if err := l.stopCleaner(ctx); err != nil {
			return err
		}
	} else if mr.Name == cachesName && !ptr.Deref(mr.Spec.KeepObjects, false) {
		if err := l.prune(ctx, nil, nil); err != nil {
			return err
		}
	}
	return seed.Delete(ctx, mr, opts...)
}

// catchUp handles the ManagedResources that were ignored during the hibernation.
func (l *landscape) catchUp(ctx context.Context) error {
	mrs := &resourcesv1alpha1.ManagedResourceList{}
	if err := l.seed.List(ctx, mrs); err != nil {
		return err
	}
	for i := range mrs.Items {
		mr := &mrs.Items[i]
		ignored := mr.DeletionTimestamp != nil || l.missed[mr.Name]
		if !ignored || l.ignores(ctx, l.seed, mr.Name) {
			continue
		}
		if mr.DeletionTimestamp == nil {
			if err := l.written(ctx, l.seed, mr); err != nil {
				return err
			}
			continue
		}
		mr.Finalizers = slices.DeleteFunc(mr.Finalizers, func(f string) bool { return f == managerFinalizer })
		if err := l.seed.Update(ctx, mr); err != nil {
			return err
		}
	}
	return nil
}

// TestDisableWhileHibernated checks that the deletion does not wait for objects that nothing
// removes before the shoot wakes up.
func TestDisableWhileHibernated(t *testing.T) {
	l, _ := newRunningLandscape(t, nil)
	l.changeShoot(t, hibernated)
	l.actuator.waits.deleted = 10 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := l.actuator.Delete(ctx, logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	mr, err := l.actuator.managedResource(t.Context(), namespace, cachesName)
	if err != nil || mr.DeletionTimestamp == nil || l.exists(t, monitoringName) {
		t.Errorf("ManagedResource %v, error %v; that of the seed is there: %t", mr, err, l.exists(t, monitoringName))
	}
	l.changeShoot(t)
	if l.exists(t, cachesName) {
		t.Error("after waking up, the caches still exist")
	}
}

// TestHibernationWithCleaner checks that a leftover cleaner blocks nothing.
func TestHibernationWithCleaner(t *testing.T) {
	l, _ := newRunningLandscape(t, nil)
	l.changeShoot(t, hibernated)
	if err := l.seed.Create(t.Context(), managedResource(cleanerName)); err != nil {
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
