package operate

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// GardenletOf returns a gardenlet for another Shoot on the same seed, with the same garden. The
// seed cluster itself is the Shoot's cluster, so its caches run on the seed's node. The Shoot has
// no machines: its worker pool is empty, no gardener-node-agent runs, and a pull uses its caches
// only by their address. Two such Shoots at a time would conflict in the seed's kube-system. The
// caller deletes the Shoot, or Down removes it with the seed. It returns an error before Up.
func GardenletOf(ctx context.Context, t *kind.Testbed, name string) (*gardenlet.Gardenlet, error) {
	if t.Gardenlet == nil {
		return nil, fmt.Errorf("shoot %s: start the testbed with `testbed up` first", name)
	}
	if name == t.Gardenlet.Name {
		return nil, fmt.Errorf("shoot %s is the testbed's first one", name)
	}
	shoot, err := gardener.NewShootClient(t.Seed.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("connect to the seed as the cluster of shoot %s: %w", name, err)
	}
	if err := gardener.InstallPriorityClasses(ctx, shoot.Client()); err != nil {
		return nil, err
	}
	second := *t.Gardenlet
	second.Name = name
	second.Shoot, second.ShootKubeconfig = shoot, t.Seed.InternalKubeconfig()
	second.Machines, second.IPFamilies = nil, nil // the seed's node, with IPv4
	return &second, nil
}
