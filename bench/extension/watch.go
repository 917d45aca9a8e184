package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// pollInterval can be short, because the Extensions are read from an informer.
const pollInterval = 100 * time.Millisecond

// Watch reads the Extensions of a seed from an informer.
type Watch struct {
	extensions client.Reader
}

// StartWatch starts the stand-in for gardener-resource-manager and a watch on the Extensions, and
// returns when their informers are synced. Both run until the context ends. When they stop, fail is
// called with their error, or with nil.
func StartWatch(ctx context.Context, seed, shoot *rest.Config, fail func(error)) (*Watch, error) {
	mgr, err := manager.New(seed, manager.Options{
		Scheme:  kubernetes.SeedScheme,
		Logger:  logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the stand-in for gardener-resource-manager: %w", err)
	}
	live, liveErr := client.New(seed, client.Options{Scheme: kubernetes.SeedScheme})
	shootClient, shootErr := client.New(shoot, client.Options{Scheme: kubernetes.ShootScheme})
	if err := errors.Join(liveErr, shootErr); err != nil {
		return nil, fmt.Errorf("creating the clients of the stand-in for gardener-resource-manager: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).
		For(&resourcesv1alpha1.ManagedResource{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: writers, SkipNameValidation: ptr.To(true)}).
		Complete(&resourceManager{
			managedResources: mgr.GetCache(), seed: live, shoot: shootClient, created: map[client.ObjectKey]bool{},
		})
	if err == nil {
		_, err = mgr.GetCache().GetInformer(ctx, &extensionsv1alpha1.Extension{})
	}
	if err != nil {
		return nil, fmt.Errorf("watching the seed: %w", err)
	}
	go func() { fail(mgr.Start(ctx)) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watching the seed: %w", context.Cause(ctx))
	}
	return &Watch{extensions: mgr.GetCache()}, nil
}

// Wanted selects the Extensions in the namespaces that Is accepts. Count is the number of these
// Extensions, and Timeout limits the wait for them.
type Wanted struct {
	Is      func(namespace string) bool
	Count   int
	Timeout time.Duration
}

// AwaitReconciled returns when each wanted Extension has succeeded, at the start time or later. On
// timeout, the error contains the name and state of an Extension that has not succeeded.
func (w *Watch) AwaitReconciled(ctx context.Context, start time.Time, wanted Wanted) error {
	return w.await(ctx, wanted, func(ex *extensionsv1alpha1.Extension) bool { return succeeded(ex, start) })
}

// AwaitFailed returns when each wanted Extension has reported an error, at the start time or later.
func (w *Watch) AwaitFailed(ctx context.Context, start time.Time, wanted Wanted) error {
	return w.await(ctx, wanted, func(ex *extensionsv1alpha1.Extension) bool {
		return ex.Status.LastError != nil && !before(ex.Status.LastError.LastUpdateTime, start)
	})
}

func (w *Watch) await(ctx context.Context, wanted Wanted, done func(*extensionsv1alpha1.Extension) bool) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, wanted.Timeout, true, func(ctx context.Context) (bool, error) {
		list := &extensionsv1alpha1.ExtensionList{}
		if err := w.extensions.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return false, err
		}
		left := wanted.Count
		for i := range list.Items {
			ex := &list.Items[i]
			switch {
			case !wanted.Is(ex.Namespace):
			case done(ex):
				left--
			default:
				missing = fmt.Errorf("extension of %s: %s", ex.Namespace, state(ex))
			}
		}
		return left == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting %s for %d Extensions: %w", wanted.Timeout, wanted.Count, errors.Join(missing, err))
	}
	return nil
}

func succeeded(ex *extensionsv1alpha1.Extension, start time.Time) bool {
	last := ex.Status.LastOperation
	_, asked := ex.Annotations[v1beta1constants.GardenerOperation]
	return !asked && last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded && !before(&last.LastUpdateTime, start)
}

// before reports whether a time from a status is earlier than the start time. The start time is
// first rounded down to a whole second, because a status contains only whole seconds.
func before(at *metav1.Time, start time.Time) bool {
	return at.Time.Before(start.Truncate(time.Second))
}

func state(ex *extensionsv1alpha1.Extension) string {
	switch {
	case ex.Status.LastError != nil:
		return ex.Status.LastError.Description
	case ex.Status.LastOperation != nil:
		return string(ex.Status.LastOperation.State) + " since " + ex.Status.LastOperation.LastUpdateTime.UTC().Format(time.TimeOnly)
	default:
		return "not seen by the controller"
	}
}
