package bulkhead

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// slowAfter is how long a failing operation may take before its shoot counts as unresponsive. An
// operation that waits for an unresponsive shoot takes longer than that, other failures less than a
// second.
const slowAfter = 5 * time.Second

// forgetAfter is the time without an attempt after which a shoot is forgotten. The workqueue
// retries within 1,000 seconds, so a shoot without an attempt for an hour has no Extension.
const forgetAfter = time.Hour

var unresponsiveShoots = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "registry_cache_extension_unresponsive_shoots",
	Help: "Shoots whose last operation failed after it had blocked a worker of the controller for seconds.",
})

func init() { metrics.Registry.MustRegister(unresponsiveShoots) }

// bulkhead prevents unresponsive shoots from occupying all workers. A shoot is unresponsive if its
// last operation was slow and failed. Such shoots take turns on half of the workers. If it is not a
// shoot's turn, its operation fails at once with the previous error, and the workqueue retries it
// with backoff. A shoot whose Extension was changed may use any free slot at once, because the
// change may fix the cause. ForceDelete sends no request to the shoot and is never delayed.
type bulkhead struct {
	actuator  extension.Actuator
	slowAfter time.Duration
	slots     int

	mu           sync.Mutex
	inUse        int                // occupied slots
	unresponsive map[string]attempt // shoots that share the slots, by namespace
}

// attempt is the result of the last operation on an unresponsive shoot.
type attempt struct {
	err        error
	ended      time.Time
	generation int64     // of the Extension
	next       time.Time // the earliest time for a retry, so that other shoots get their turn
}

// New wraps the actuator of a controller that has this number of workers. With a single worker, an
// unresponsive shoot can still block the controller.
func New(actuator extension.Actuator, workers int) extension.Actuator {
	return &bulkhead{actuator: actuator, slowAfter: slowAfter, slots: max(1, workers/2), unresponsive: map[string]attempt{}}
}

func (b *bulkhead) Reconcile(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return b.do(ctx, log, ex, b.actuator.Reconcile)
}

func (b *bulkhead) Delete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return b.do(ctx, log, ex, b.actuator.Delete)
}

func (b *bulkhead) ForceDelete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	err := b.actuator.ForceDelete(ctx, log, ex)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.unresponsive, ex.Namespace)
		unresponsiveShoots.Set(float64(len(b.unresponsive)))
	}
	return err
}

func (b *bulkhead) Restore(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return b.do(ctx, log, ex, b.actuator.Restore)
}

func (b *bulkhead) Migrate(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return b.do(ctx, log, ex, b.actuator.Migrate)
}

func (b *bulkhead) do(
	ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension,
	operate func(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error,
) (err error) {
	unresponsive, err := b.enter(ex)
	if err != nil {
		return err
	}
	started, generation := time.Now(), ex.Generation
	defer func() { // also after a panic, which controller-runtime recovers
		b.leave(ex.Namespace, unresponsive, attempt{err: err, generation: generation}, started)
	}()
	return operate(ctx, log, ex)
}

// enter reserves a slot if the shoot is unresponsive. It returns an error if the operation must
// wait.
func (b *bulkhead) enter(ex *extensionsv1alpha1.Extension) (unresponsive bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, unresponsive := b.unresponsive[ex.Namespace]
	if !unresponsive {
		return false, nil
	}
	changed := last.generation != ex.Generation
	if b.inUse == b.slots || !changed && time.Now().Before(last.next) {
		return true, fmt.Errorf("waiting for other unresponsive shoots, will be retried; the last attempt failed: %w", last.err)
	}
	b.inUse++
	return true, nil
}

// leave frees the slot and records whether the shoot was unresponsive this time.
func (b *bulkhead) leave(namespace string, unresponsive bool, last attempt, started time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(b.unresponsive, func(_ string, a attempt) bool { return now.Sub(a.ended) > forgetAfter })
	if unresponsive {
		b.inUse--
	}
	delete(b.unresponsive, namespace)
	if took := now.Sub(started); last.err != nil && took >= b.slowAfter {
		others := max(0, len(b.unresponsive)+1-b.slots)
		rest := took * time.Duration(others) / time.Duration(b.slots)
		last.ended, last.next = now, now.Add(rest)
		b.unresponsive[namespace] = last
	}
	unresponsiveShoots.Set(float64(len(b.unresponsive)))
}
