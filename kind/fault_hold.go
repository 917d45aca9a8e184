package kind

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault"
)

// HoldFault is AddFault for as long as ctx lasts and the fault's own time: then it mends the fault, and returns when that is done.
// begun is told the fault as soon as it holds. What a process that was killed leaves broken ends as after AddFault.
func (t *Testbed) HoldFault(ctx context.Context, wanted fault.Fault, begun func(fault.Fault) error) error {
	lasts := time.Duration(wanted.For)
	if wanted.Tended() {
		wanted.For = 0
	}
	held, err := t.AddFault(ctx, wanted)
	if err != nil {
		return err
	}
	if held.Tended() && lasts > 0 {
		held.For, held.Ends = fault.Duration(lasts), held.Began.Add(lasts)
	}
	failed := begun(held)
	if held.Instant() {
		return failed
	}
	if failed == nil {
		awaitEnd(ctx, lasts)
	}
	// Whoever interrupts the wait still wants it mended.
	if err := t.release(context.WithoutCancel(ctx), held); err != nil {
		return fmt.Errorf("clear fault %s: %w", held.ID, err)
	}
	return failed
}

// release mends the fault unless it has ended. Another one may have its ID by now.
func (t *Testbed) release(ctx context.Context, held fault.Fault) error {
	unlock, err := t.lockFaults(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	listing, cancel := context.WithTimeoutCause(ctx, faultTimeout, fmt.Errorf("no list of faults after %s", faultTimeout))
	defer cancel()
	active, err := t.activeFaults(listing)
	if err == nil && !slices.ContainsFunc(active, held.Same) {
		return nil
	}
	return t.clear(ctx, held)
}

// awaitEnd returns after the time, if there is one, or when ctx ends.
func awaitEnd(ctx context.Context, lasts time.Duration) {
	var over <-chan time.Time
	if lasts > 0 {
		over = time.After(lasts)
	}
	select {
	case <-ctx.Done():
	case <-over:
	}
}
