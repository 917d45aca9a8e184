package bringup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// mirrorsTimeout bounds how long Up waits for nodes to ask the caches. Nodes ask a cache when it has answered them once.
const mirrorsTimeout = time.Minute

// awaitMirrors waits until the workers ask every cache of the shoot, so that the first pull after Up goes through it. A cache that is
// not there by then is no failure of Up: a Shoot may be configured so.
func awaitMirrors(ctx context.Context, t *kind.Testbed) error {
	return t.Recorder.Step(ctx, "nodes pull through the caches", func(ctx context.Context) error {
		left := awaitNothingLeft(ctx, func(ctx context.Context) []string { return leftToAwait(status.OfShoot(ctx, t)) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(left) > 0 {
			progress.Note(ctx, "not after %s: %s", mirrorsTimeout, strings.Join(left, ", "))
		}
		return nil
	})
}

// awaitNothingLeft looks until nothing is left, within mirrorsTimeout, and returns what was left at last. A look that was cut short
// by the end of that time tells nothing of the nodes: what the one before it found stands.
func awaitNothingLeft(ctx context.Context, look func(context.Context) []string) (left []string) {
	_ = wait.PollUntilContextTimeout(ctx, time.Second, mirrorsTimeout, true, func(ctx context.Context) (bool, error) {
		found := look(ctx)
		if ctx.Err() == nil || len(found) == 0 || len(left) == 0 {
			left = found
		}
		return len(found) == 0, nil
	})
	return left
}

// leftToAwait says what a look at the shoot leaves to wait for. A cluster that does not answer now may do so in time: what of the
// seed could not be read is left, too, since without its operating system configs no cache would be missing.
func leftToAwait(status *status.Shoot, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	return append(status.SeedProblems(), missingMirrors(status)...)
}

// missingMirrors names the workers that do not ask a cache of which their configuration tells.
func missingMirrors(status *status.Shoot) []string {
	var missing []string
	for _, config := range status.OperatingSystemConfigs {
		for _, registry := range config.Registries {
			for _, node := range status.Nodes {
				if !strings.HasSuffix(node.Name, "-control-plane") && !asks(node, registry.Endpoint) {
					missing = append(missing, fmt.Sprintf("%s does not ask %s for %s", node.Name, registry.Endpoint, registry.Upstream))
				}
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

func asks(s status.Node, endpoint string) bool {
	return slices.ContainsFunc(s.Mirrors, func(mirror hostsfile.Mirror) bool { return slices.Contains(mirror.Hosts, endpoint) })
}
