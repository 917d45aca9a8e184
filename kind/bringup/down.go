package bringup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/debian"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/process"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// downTimeout bounds Down; an engine that has to be started for it is the slowest part.
const downTimeout = 3 * time.Minute

// Down removes all that Up may have left, however it ended: processes, containers and their volumes, the network, the
// state folder, and the engine if Up started it and nobody else uses it. The node image and what it is built from
// stay, for the next Up. Where nothing is left, Down does nothing and succeeds.
//
// A testbed that runs and belongs to another directory is a *OtherCheckoutError and stays; what one has left that is gone is removed.
// While there is an engine that does not answer, and a state folder, the error is an *engine.Missing, and containers and folder stay: the
// clusters may run.
//
// One part that cannot be removed does not keep the others; the error names each.
func Down(ctx context.Context, t *kind.Testbed) error {
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := progress.Within(ctx, downTimeout, "the testbed was not down")
	defer cancel()
	return t.Recorder.Step(ctx, "down", func(ctx context.Context) error { return removeAll(ctx, t) })
}

func removeAll(ctx context.Context, t *kind.Testbed) error {
	if engine.Running(ctx) != nil { // before anything is ended: processes that are marked with the prefix are its owner's, too
		if err := t.CheckOwner(ctx); errors.As(err, new(*kind.OtherCheckoutError)) {
			return err
		}
	}
	count, failed := process.EndMarked(ctx, "/proc", t.Prefix)
	if count > 0 {
		progress.Note(ctx, "%d processes of an interrupted run", count)
	}
	found, err := engine.Attach(ctx)
	if errors.As(err, new(*engine.Missing)) && !t.State.Exists() {
		err = nil // there is nothing of this checkout that could run on it
	}
	failed = errors.Join(failed, debian.AllowServiceStart(), explained(err, disks{directories: []string{defaultDataRoot}}))
	if found != nil {
		if err := t.CheckOwner(ctx); err != nil {
			return errors.Join(failed, err)
		}
		failed = errors.Join(failed,
			cluster.Delete(ctx, t.SeedName()),
			cluster.Delete(ctx, t.ShootName()),
			upstream.Remove(ctx, t.Prefix),
			cluster.RemoveNetwork(ctx),
			engine.Release(ctx))
	}
	if failed == nil {
		failed = RemoveState(t)
	}
	t.Parts = kind.Parts{}
	return failed
}

// removeState removes the folder. Locks are elsewhere, see turn, and stay.
func RemoveState(t *kind.Testbed) error {
	if err := os.RemoveAll(string(t.State)); err != nil {
		return fmt.Errorf("remove the state of the testbed: %w", err)
	}
	return nil
}
