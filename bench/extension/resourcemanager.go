package extension

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// resourceManager replaces the gardener-resource-managers of all shoots. It reports each
// ManagedResource as applied, but creates only Services: the extension needs their cluster IPs.
type resourceManager struct {
	seed, shoot client.Client

	mu      sync.Mutex
	created map[client.ObjectKey]bool // the Services, which are the same for all shoots
}

// Reconcile applies a ManagedResource, unless its current generation was already applied.
func (r *resourceManager) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := r.seed.Get(ctx, request.NamespacedName, mr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if mr.DeletionTimestamp != nil || mr.Status.ObservedGeneration == mr.Generation {
		return reconcile.Result{}, nil
	}
	if mr.Spec.Class == nil {
		if err := r.apply(ctx, mr); err != nil {
			return reconcile.Result{}, fmt.Errorf("apply ManagedResource %s: %w", request, err)
		}
	}
	patch := client.MergeFrom(mr.DeepCopy())
	mr.Status.ObservedGeneration = mr.Generation
	applied := v1beta1helper.GetOrInitConditionWithClock(clock.RealClock{}, mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	applied = v1beta1helper.UpdatedConditionWithClock(clock.RealClock{}, applied, gardencorev1beta1.ConditionTrue, "Bench", "Applied by a stand-in.")
	mr.Status.Conditions = v1beta1helper.MergeConditions(mr.Status.Conditions, applied)
	return reconcile.Result{}, client.IgnoreNotFound(r.seed.Status().Patch(ctx, mr, patch))
}

func (r *resourceManager) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	objects, err := managedresources.GetObjects(ctx, r.seed, mr.Namespace, mr.Name)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, object := range objects {
		service, ok := object.(*corev1.Service)
		if !ok || r.created[client.ObjectKeyFromObject(object)] {
			continue
		}
		if err := client.IgnoreAlreadyExists(r.shoot.Create(ctx, service)); err != nil {
			return fmt.Errorf("create service %s: %w", service.Name, err)
		}
		r.created[client.ObjectKeyFromObject(object)] = true
	}
	return nil
}

// startResourceManager starts the stand-in and an informer for Extensions, and returns a reader of
// the synced informer. Both run until the context ends. If they end earlier, fail is called.
func startResourceManager(ctx context.Context, seed, shoot *rest.Config, fail func(error)) (client.Reader, error) {
	mgr, err := manager.New(seed, manager.Options{
		Scheme:  kubernetes.SeedScheme,
		Logger:  logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("create the stand-in for gardener-resource-manager: %w", err)
	}
	services, err := client.New(shoot, client.Options{Scheme: kubernetes.ShootScheme})
	if err != nil {
		return nil, fmt.Errorf("create a client for the shoots: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).
		For(&resourcesv1alpha1.ManagedResource{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: writers, SkipNameValidation: ptr.To(true)}).
		Complete(&resourceManager{seed: mgr.GetClient(), shoot: services, created: map[client.ObjectKey]bool{}})
	if err == nil {
		_, err = mgr.GetCache().GetInformer(ctx, &extensionsv1alpha1.Extension{})
	}
	if err != nil {
		return nil, fmt.Errorf("watch the seed: %w", err)
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			fail(fmt.Errorf("the stand-in for gardener-resource-manager ended: %w", err))
		}
	}()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch the seed: %w", context.Cause(ctx))
	}
	return mgr.GetClient(), nil
}

// awaitReconciled returns when the Extension in each wanted namespace has succeeded, at the start
// time or later. On timeout, the error contains the state of an Extension that has not succeeded.
func awaitReconciled(ctx context.Context, extensions client.Reader, start time.Time, wanted map[string]bool, timeout time.Duration) error {
	// A status contains only whole seconds.
	done := health.And(health.CheckExtensionObject, health.ExtensionOperationHasBeenUpdatedSince(metav1.NewTime(start.Truncate(time.Second).Add(-1))))
	const interval = 100 * time.Millisecond // it can be short, because an informer is read
	var missing error
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		list := &extensionsv1alpha1.ExtensionList{}
		if err := extensions.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return false, err
		}
		left := len(wanted)
		for i := range list.Items {
			extension := &list.Items[i]
			if !wanted[extension.Namespace] {
				continue
			}
			if err := done(extension); err != nil {
				missing = fmt.Errorf("extension of %s: %w", extension.Namespace, err)
				continue
			}
			left--
		}
		return left == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait %s for %d Extensions: %w", timeout, len(wanted), errors.Join(missing, err))
	}
	return nil
}
