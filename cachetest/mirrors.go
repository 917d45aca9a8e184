package cachetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/status"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// mirrorsTimeout bounds awaitMirrors. A node configures a mirror after the cache's first answer,
// and the provisioner of the cache's volume can fail once while the kubelets restart.
const mirrorsTimeout = 2 * time.Minute

// awaitMirrors waits until every cache of the Shoot is a mirror on the workers, so that the first
// pull after Up uses it. A missing mirror is not an error: the Shoot's configuration can cause it.
func awaitMirrors(ctx context.Context, t *kind.Testbed) error {
	pending := pollPending(ctx, func(ctx context.Context) []string { return pendingMirrors(status.OfShoot(ctx, t)) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(pending) > 0 {
		progress.Note(ctx, "not after %s: %s", mirrorsTimeout, strings.Join(pending, ", "))
	}
	return nil
}

// pollPending calls the function every second until the result is empty, for at most
// mirrorsTimeout, and returns the last result. If the timeout interrupts a call, that call's result
// is ignored, unless there is no earlier one.
func pollPending(ctx context.Context, list func(context.Context) []string) (pending []string) {
	_ = wait.PollUntilContextTimeout(ctx, time.Second, mirrorsTimeout, true, func(ctx context.Context) (bool, error) {
		found := list(ctx)
		if ctx.Err() == nil || len(found) == 0 || len(pending) == 0 {
			pending = found
		}
		return len(found) == 0, nil
	})
	return pending
}

// pendingMirrors returns missing mirrors and errors of the clusters. Such errors may be temporary.
func pendingMirrors(status *status.Shoot, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	return append(status.SeedProblems(), missingMirrors(status)...)
}

func missingMirrors(status *status.Shoot) []string {
	var missing []string
	for _, config := range status.OperatingSystemConfigs {
		configured, _ := config.Report.(*configReport)
		if configured == nil {
			continue
		}
		for _, registry := range configured.Registries {
			asks := func(mirror nodeconfig.HostConfig) bool { return slices.Contains(mirror.Hosts, registry.Endpoint) }
			for _, node := range status.Nodes {
				found, _ := node.Report.(*nodeReport)
				if !strings.HasSuffix(node.Name, "-control-plane") && (found == nil || !slices.ContainsFunc(found.Mirrors, asks)) {
					missing = append(missing, fmt.Sprintf("%s does not ask %s for %s", node.Name, registry.Endpoint, registry.Upstream))
				}
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}
