package bringup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
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

// Down removes everything that Up may have left, even an interrupted Up: processes, containers and
// their volumes, the network, the state folder, and the engine if Up started it and nothing else
// uses it. The node image and its inputs stay. The error names what could not be removed.
//
// The error is an *engine.Missing if there is a state folder but the engine does not answer, since
// the clusters may still run. Then the containers and the state folder stay.
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
		progress.Note(ctx, "%d processes of an interrupted run", count)
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
	if failed == nil { // the locks are elsewhere, and stay
		if failed = os.RemoveAll(string(t.State)); failed != nil {
			failed = fmt.Errorf("remove the state of the testbed: %w", failed)
		}
	}
	t.Parts = kind.Parts{}
	return failed
}

// PlanDown returns one line for each action of Down, or the error that would stop Down early.
func PlanDown(ctx context.Context, t *kind.Testbed) ([]string, error) {
	var lines []string
	pids, err := command.Marked(t.Prefix)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		lines = append(lines, fmt.Sprintf("end process %d", pid))
	}
	if found, err := engine.Attach(ctx); err != nil {
		return nil, err
	} else if found != nil {
		for _, label := range []string{
			"io.x-k8s.kind.cluster=" + t.SeedName(), "io.x-k8s.kind.cluster=" + t.ShootName(), upstream.Label + "=" + t.Prefix,
		} {
			names, err := command.Output(ctx, "docker", "ps", "--all", "--filter", "label="+label, "--format", "{{.Names}}")
			if err != nil {
				return nil, fmt.Errorf("list the containers with label %s: %w", label, err)
			}
			for _, name := range strings.Fields(names) {
				lines = append(lines, "remove container "+name+" and its volumes")
			}
		}
		lines = append(lines, "remove the network of the clusters, and stop the engine if `up` started it, unless another testbed uses them")
	}
	if t.State.Exists() {
		lines = append(lines, "remove folder "+t.Relative(string(t.State)))
	}
	return lines, nil
}
