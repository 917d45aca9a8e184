package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// HoldFault is AddFault for as long as ctx lasts and the fault's own time: then it mends the fault, and returns when that is done.
// begun is told the fault as soon as it holds. What a process that was killed leaves broken ends as after AddFault. One that
// has ended before its time, as Down ends all, is no error.
func Hold(ctx context.Context, t *kind.Testbed, wanted spec.Fault, begun func(spec.Fault) error) error {
	lasts := time.Duration(wanted.For)
	if wanted.Tended() {
		wanted.For = 0
	}
	held, err := Add(ctx, t, wanted)
	if err != nil {
		return err
	}
	if held.Tended() && lasts > 0 {
		held.For, held.Ends = spec.Duration(lasts), held.Began.Add(lasts)
	}
	failed := begun(held)
	if held.Instant() {
		return failed
	}
	if failed == nil {
		awaitEnd(ctx, lasts)
	}
	// Whoever interrupts the wait still wants it mended.
	if err := release(context.WithoutCancel(ctx), t, held); err != nil {
		return fmt.Errorf("clear fault %s: %w", held.ID, err)
	}
	return failed
}

// release mends the fault unless it has ended. Another one may have its ID by now.
func release(ctx context.Context, t *kind.Testbed, held spec.Fault) error {
	if removed, err := removed(ctx, t); removed || err != nil {
		return err
	}
	unlock, err := lockFaults(ctx, t)
	if err != nil {
		return err
	}
	defer unlock()
	listing, cancel := progress.Within(ctx, faultTimeout, "no list of faults")
	defer cancel()
	active, err := activeFaults(listing, t)
	if err == nil && !slices.ContainsFunc(active, held.Same) {
		return nil
	}
	return clear(ctx, t, held)
}

// removed tells whether Down has taken the testbed away meanwhile, and with it all faults. Clusters whose state is gone are an ErrDown:
// to lock their faults would make the folder anew.
func removed(ctx context.Context, t *kind.Testbed) (bool, error) {
	ctx, cancel := progress.Within(ctx, faultTimeout, "no list of the nodes")
	defer cancel()
	_, err := os.Stat(string(t.State))
	stateless := errors.Is(err, fs.ErrNotExist)
	for _, name := range []string{t.SeedName(), t.ShootName()} {
		there, err := cluster.Exists(ctx, name)
		switch {
		case err != nil:
			return stateless, nil // Down stops an engine of ours, too; any other that does not answer is told by what comes next
		case there && stateless:
			return false, fmt.Errorf("cluster %s is there and %s is not: %w", name, t.State, kind.ErrDown)
		case there:
			return false, nil
		}
	}
	return true, nil
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
