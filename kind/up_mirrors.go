package kind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// mirrorsTimeout bounds how long Up waits for nodes to ask the caches. Nodes ask a cache when it has answered them once.
const mirrorsTimeout = time.Minute

// awaitMirrors waits until the workers ask every cache of the shoot, so that the first pull after Up goes through it. A cache that is
// not there by then is no failure of Up: a Shoot may be configured so.
func (t *Testbed) awaitMirrors(ctx context.Context) error {
	return t.recorder.Step(ctx, "nodes pull through the caches", func(ctx context.Context) error {
		var missing []string
		err := wait.PollUntilContextTimeout(ctx, time.Second, mirrorsTimeout, true, func(ctx context.Context) (bool, error) {
			status, err := t.ShootStatus(ctx)
			if missing = missingMirrors(status); err != nil { // a cluster that does not answer now may do so in time
				missing = []string{err.Error()}
			}
			return len(missing) == 0, nil
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			progress.Note(ctx, "not after %s: %s", mirrorsTimeout, strings.Join(missing, ", "))
		}
		return nil
	})
}

// missingMirrors names the workers that do not ask a cache of which their configuration tells.
func missingMirrors(status *ShootStatus) []string {
	var missing []string
	if status == nil {
		return nil
	}
	for _, config := range status.OperatingSystemConfigs {
		for _, registry := range config.Registries {
			for _, node := range status.Nodes {
				if !strings.HasSuffix(node.Name, "-control-plane") && !node.asks(registry.Endpoint) {
					missing = append(missing, fmt.Sprintf("%s does not ask %s for %s", node.Name, registry.Endpoint, registry.Upstream))
				}
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

func (s ShootNodeStatus) asks(endpoint string) bool {
	return slices.ContainsFunc(s.Mirrors, func(mirror MirrorStatus) bool { return slices.Contains(mirror.Hosts, endpoint) })
}
