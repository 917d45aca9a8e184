package controller

import (
	"cmp"
	"context"
	"errors"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/managedresource"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// managerFinalizer is the finalizer that gardener-resource-manager removes when the objects are
	// gone.
	managerFinalizer = resourcemanagerpredicate.FinalizerName
	// deletionPending is how long gardener-resource-manager waits for a deletion.
	deletionPending = time.Nanosecond
)

// newManager returns the reconciler of the shoot's gardener-resource-manager.
func (l *landscape) newManager() *managedresource.Reconciler {
	quota := func(object client.Object) error {
		if l.applyError != "" && object.GetObjectKind().GroupVersionKind().Kind == cmp.Or(l.refusedKind, "Service") {
			return errors.New(l.applyError)
		}
		return nil
	}
	shoot := interceptor.NewClient(l.shoot, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := errors.Join(quota(obj), makeReplicated(obj)); err != nil {
				return err
			}
			obj.SetCreationTimestamp(metav1.Now())
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := errors.Join(quota(obj), makeReplicated(obj)); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
	})
	reconciler := &managedresource.Reconciler{
		SourceClient: l.unwatched, TargetClient: shoot, TargetScheme: scheme, TargetRESTMapper: shoot.RESTMapper(),
		Clock: clock.RealClock{}, ClassFilter: resourcemanagerpredicate.NewClassFilter(""),
		GarbageCollectorActivated: true, RequeueAfterOnDeletionPending: ptr.To(deletionPending),
	}
	reconciler.Config.SyncPeriod, reconciler.Config.ManagedByLabelValue = &metav1.Duration{Duration: time.Hour}, ptr.To("gardener")
	return reconciler
}

// manage acts as gardener-resource-manager for one ManagedResource, and as the controllers of the
// shoot. A canceled context stops neither.
func (l *landscape) manage(ctx context.Context, name string) error {
	ctx = logf.IntoContext(context.WithoutCancel(ctx), logr.Discard())
	for attempt, pending := 0, true; pending && attempt < 5; attempt++ { // an object with a finalizer remains
		result, err := l.manager.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
		if err != nil && l.applyError == "" && !l.guarded {
			return err
		}
		if err := l.runShoot(ctx); err != nil {
			return err
		}
		pending = result.RequeueAfter == deletionPending
	}
	return l.reportRollout(ctx, name)
}

// reportRollout acts as the health controller of gardener-resource-manager.
func (l *landscape) reportRollout(ctx context.Context, name string) error {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := l.unwatched.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, mr); err != nil {
		return client.IgnoreNotFound(err)
	}
	progressing := gardencorev1beta1.Condition{Type: resourcesv1alpha1.ResourcesProgressing, Status: gardencorev1beta1.ConditionFalse}
	if !l.progressing.IsZero() {
		progressing.Status, progressing.LastTransitionTime = gardencorev1beta1.ConditionTrue, metav1.NewTime(l.progressing)
	}
	mr.Status.Conditions = v1beta1helper.MergeConditions(mr.Status.Conditions, progressing)
	if l.behind {
		mr.Status.ObservedGeneration--
	}
	return l.unwatched.Status().Update(ctx, mr)
}

// onWrite runs gardener-resource-manager after a ManagedResource was written.
func (l *landscape) onWrite(ctx context.Context, obj client.Object) error {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok || mr.DeletionTimestamp != nil {
		return nil
	}
	l.note("apply", mr.Name)
	if l.finalizer != "" {
		stays := mr.DeepCopy()
		stays.Finalizers = append(stays.Finalizers, l.finalizer)
		if err := l.unwatched.Update(ctx, stays); err != nil {
			return err
		}
	}
	if l.missed[mr.Name] = l.ignores(ctx, mr.Name); l.missed[mr.Name] {
		return nil
	}
	return l.manage(ctx, mr.Name)
}

// countGeneration acts as the API server for an update of a ManagedResource.
func countGeneration(ctx context.Context, c client.Client, obj client.Object) error {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	old := &resourcesv1alpha1.ManagedResource{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(mr), old); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(old.Spec, mr.Spec) {
		mr.Generation = old.Generation + 1
	}
	return nil
}

// ignores reports whether no gardener-resource-manager handles the ManagedResource. gardenlet
// scales down the one of a hibernated shoot. The seed's is not part of the landscape.
func (l *landscape) ignores(ctx context.Context, name string) bool {
	if name == monitoringName || l.away {
		return true
	}
	if l.awake {
		return false
	}
	cluster := &extensionsv1alpha1.Cluster{}
	if err := l.unwatched.Get(context.WithoutCancel(ctx), client.ObjectKey{Name: namespace}, cluster); err != nil {
		return false
	}
	shoot, err := extensions.ShootFromCluster(cluster)
	return err == nil && shoot.DeletionTimestamp == nil && extensionscontroller.IsHibernated(&extensionscontroller.Cluster{Shoot: shoot})
}

// onDelete runs gardener-resource-manager after the deletion of a ManagedResource was requested.
func (l *landscape) onDelete(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, opts ...client.DeleteOption) error {
	if err := l.unwatched.Delete(ctx, mr, opts...); err != nil {
		return err
	}
	if l.missed[mr.Name] = l.ignores(ctx, mr.Name); l.missed[mr.Name] {
		return nil
	}
	return l.manage(ctx, mr.Name)
}

// catchUp handles the ManagedResources that were ignored during the hibernation. Those that fail
// are handled again the next time.
func (l *landscape) catchUp(ctx context.Context) (failed error) {
	mrs := &resourcesv1alpha1.ManagedResourceList{}
	if err := l.unwatched.List(ctx, mrs); err != nil {
		return err
	}
	for _, mr := range mrs.Items {
		if ignored := mr.DeletionTimestamp != nil || l.missed[mr.Name]; !ignored || l.ignores(ctx, mr.Name) {
			continue
		}
		err := l.manage(ctx, mr.Name)
		l.missed[mr.Name] = err != nil
		failed = errors.Join(failed, err)
	}
	return failed
}
