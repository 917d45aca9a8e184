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

// Hold adds a fault and calls begun with it. It waits for the duration of the fault or the end of
// ctx, clears the fault, and returns. A fault that something else has ended, for example Down, is
// not an error. If this process is killed, the fault ends as after Add.
func Hold(ctx context.Context, t *kind.Testbed, wanted spec.Fault, begun func(spec.Fault) error) error {
	lasts := time.Duration(wanted.For)
	if wanted.EndsOnlyByCommand() {
		wanted.For = 0
	}
	held, err := Add(ctx, t, wanted)
	if err != nil {
		return err
	}
	if held.EndsOnlyByCommand() && lasts > 0 {
		held.For, held.Ends = spec.Duration(lasts), held.Began.Add(lasts)
	}
	failed := begun(held)
	if held.OneShot() {
		return failed
	}
	if failed == nil {
		awaitEnd(ctx, lasts)
	}
	// Ctrl-C ends the wait, not the clean-up.
	if err := release(context.WithoutCancel(ctx), t, held); err != nil {
		return fmt.Errorf("clear fault %s: %w", held.ID, err)
	}
	return failed
}

// release clears the fault unless it has ended. Another fault may have its ID now.
func release(ctx context.Context, t *kind.Testbed, held spec.Fault) error {
	if removed, err := removed(ctx, t); removed || err != nil {
		return err
	}
	unlock, err := lockFaults(ctx, t)
	if err != nil {
		return err
	}
	defer unlock()
	listing, cancel := progress.Within(ctx, faultTimeout, "the faults were not listed")
	defer cancel()
	active, err := activeFaults(listing, t)
	if err == nil && !slices.ContainsFunc(active, held.Same) {
		return nil
	}
	return clearActive(ctx, t, held)
}

// removed reports whether Down has removed the testbed with all faults in the meantime. It returns
// an ErrDown for clusters without a state folder, since locking their faults would create the
// folder again.
func removed(ctx context.Context, t *kind.Testbed) (bool, error) {
	ctx, cancel := progress.Within(ctx, faultTimeout, "the nodes were not listed")
	defer cancel()
	_, err := os.Stat(string(t.State))
	stateless := errors.Is(err, fs.ErrNotExist)
	for _, name := range []string{t.SeedName(), t.ShootName()} {
		there, err := cluster.Exists(ctx, name)
		switch {
		case err != nil:
			return stateless, nil // Down also stops the testbed's engine; the next step reports another engine that does not answer
		case there && stateless:
			return false, fmt.Errorf("cluster %s exists without %s: %w", name, t.State, kind.ErrDown)
		case there:
			return false, nil
		}
	}
	return true, nil
}

// awaitEnd returns after the duration, if it is not 0, or when ctx ends.
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
