package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// patience is how long an operation may take to fail before its shoot counts as one that holds workers up. What fails of
// itself does so within a second; the shortest wait for a shoot is longer.
const patience = 5 * time.Second

// forgetting is when a shoot that was not tried any more stops to count: its Extension is gone. The longest backoff of the
// workqueue is 1,000 seconds.
const forgetting = time.Hour

// bulkhead keeps shoots that do not answer from taking all workers of the controller. An operation on such a shoot holds its
// worker until its wait is over, and is retried. So shoots whose last operation held a worker up, and failed, share half of
// the workers, in turns. Out of turn an operation fails at once, with the error of last time, and the workqueue's backoff
// brings it back. All other shoots always find the other half. One whose Extension was changed since has its turn at once,
// if there is a place: what failed may be mended. A force-deletion asks no shoot and waits for none.
type bulkhead struct {
	actuator extension.Actuator
	patience time.Duration
	places   int

	mu sync.Mutex
	// taken is how many of the places are.
	taken int
	// unresponsive are the shoots that share them, by namespace.
	unresponsive map[string]attempt
}

// attempt is how the last operation on an unresponsive shoot ended.
type attempt struct {
	err   error
	ended time.Time
	// generation is the one of the Extension.
	generation int64
	// next is when its turn is again: not before all others could have had theirs.
	next time.Time
}

var _ extension.Actuator = &bulkhead{}

// newBulkhead returns a bulkhead before the actuator of a controller with so many workers. A single worker is shared by all.
func newBulkhead(actuator extension.Actuator, workers int) *bulkhead {
	return &bulkhead{actuator: actuator, patience: patience, places: max(1, workers/2), unresponsive: map[string]attempt{}}
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
		b.forget(ex.Namespace)
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

// enter says whether the shoot took one of the places, or why the operation may not begin.
func (b *bulkhead) enter(ex *extensionsv1alpha1.Extension) (unresponsive bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, unresponsive := b.unresponsive[ex.Namespace]
	if !unresponsive {
		return false, nil
	}
	changed := last.generation != ex.Generation
	if b.taken == b.places || !changed && time.Now().Before(last.next) {
		return true, fmt.Errorf("it is the turn of other shoots that hold up the controller; the last attempt failed: %w", last.err)
	}
	b.taken++
	return true, nil
}

// forget drops what is known of a shoot that goes.
func (b *bulkhead) forget(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unresponsive, namespace)
	unresponsiveShoots.Set(float64(len(b.unresponsive)))
}

// leave gives the place back, and notes whether the shoot held up its worker this time.
func (b *bulkhead) leave(namespace string, unresponsive bool, last attempt, started time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(b.unresponsive, func(_ string, a attempt) bool { return now.Sub(a.ended) > forgetting })
	if unresponsive {
		b.taken--
	}
	delete(b.unresponsive, namespace)
	if took := now.Sub(started); last.err != nil && took >= b.patience {
		others := max(0, len(b.unresponsive)+1-b.places)
		rest := took * time.Duration(others) / time.Duration(b.places)
		last.ended, last.next = now, now.Add(rest)
		b.unresponsive[namespace] = last
	}
	unresponsiveShoots.Set(float64(len(b.unresponsive)))
}
