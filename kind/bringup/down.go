package bringup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// downTimeout bounds Down. The slowest part is the restart of a dead Docker Engine.
const downTimeout = 3 * time.Minute

// Down removes everything that a complete or interrupted Up left: processes, containers and their
// volumes, the network, the state folder, and the engine if Up started it and nothing else uses it.
// Down keeps the node image and its inputs. The error names what could not be removed.
//
// The error is an *engine.Missing if there is a state folder but the engine does not answer, since
// the clusters may still be running. Down then keeps the containers and the state folder.
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
	count, failed := command.EndMarked(ctx, t.Prefix)
	if count > 0 {
		progress.Note(ctx, "processes ended: %d", count)
	}
	found, err := engine.Attach(ctx)
	if errors.As(err, new(*engine.Missing)) && !t.State.Exists() {
		err = nil // nothing of this checkout can run on that engine
	}
	failed = errors.Join(failed, explainFullDisk(err, defaultDataRoot))
	if found != nil {
		failed = errors.Join(failed,
			cluster.Delete(ctx, t.SeedName()),
			cluster.Delete(ctx, t.ShootName()),
			upstream.Remove(ctx, t.Prefix),
			cluster.RemoveNetwork(ctx),
			engine.Release(ctx))
	}
	if failed == nil { // the locks are in another folder, and Down keeps them
		if failed = os.RemoveAll(string(t.State)); failed != nil {
			failed = fmt.Errorf("remove the state of the testbed: %w", failed)
		}
	}
	t.Parts = kind.Parts{}
	return failed
}
