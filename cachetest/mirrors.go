package cachetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// mirrorsTimeout bounds awaitMirrors. A node configures a mirror after the cache's first answer,
// and the provisioner of the cache's volume can fail once while the kubelets restart.
const mirrorsTimeout = 2 * time.Minute

// awaitMirrors waits until every cache of the Shoot is a mirror on the workers, so that the first
// pull after Up uses it. A missing mirror is not an error: the Shoot's configuration can cause it.
func awaitMirrors(ctx context.Context, t *kind.Testbed) error {
	pending := pollPending(ctx, func(ctx context.Context) []string { return pendingMirrors(ctx, t) })
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

// pendingMirrors returns the missing mirrors, or why they are unknown. The cause may be temporary.
func pendingMirrors(ctx context.Context, t *kind.Testbed) []string {
	wanted, err := wantedMirrors(ctx, t.Gardenlet.Seed.Client())
	if err != nil {
		return []string{err.Error()}
	}
	var missing []string
	for _, worker := range t.Shoot.Workers() {
		report, _ := readNode(ctx, worker) // a mirror that cannot be read counts as missing
		missing = append(missing, missingMirrors(worker.Name(), wanted, report.Mirrors)...)
	}
	return missing
}

// wantedMirrors returns the mirrors in the OperatingSystemConfigs of the Shoot.
func wantedMirrors(ctx context.Context, seed client.Reader) ([]nodeconfig.Registry, error) {
	configs := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := seed.List(ctx, configs, client.InNamespace(gardenlet.Namespace(gardenlet.DefaultShoot))); err != nil {
		return nil, fmt.Errorf("list the operating system configs: %w", err)
	}
	var all []nodeconfig.Registry
	for _, config := range configs.Items {
		for _, unit := range config.Spec.Units {
			if unit.Name != nodeconfig.UnitName {
				continue
			}
			registries, err := nodeconfig.ParseUnit(ptr.Deref(unit.Content, ""))
			if err != nil {
				return nil, fmt.Errorf("operating system config %s: %w", config.Name, err)
			}
			all = append(all, registries...)
		}
	}
	return all, nil
}

func missingMirrors(node string, wanted []nodeconfig.Registry, mirrors []nodeconfig.HostConfig) []string {
	var missing []string
	for _, registry := range wanted {
		asks := func(mirror nodeconfig.HostConfig) bool { return slices.Contains(mirror.Hosts, registry.Endpoint) }
		if !slices.ContainsFunc(mirrors, asks) {
			missing = append(missing, fmt.Sprintf("%s does not ask %s for %s", node, registry.Endpoint, registry.Upstream))
		}
	}
	return missing
}
