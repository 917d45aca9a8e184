package operate

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// GardenletOf drives a further shoot of that name on the same seed, with the same garden. No third cluster is created for
// it: the seed cluster itself serves as shoot, so caches of that shoot run on the seed's node. It has no machines of its
// own: its worker pool is empty, no gardener-node-agent runs, and no pull goes through its caches unless asked for by
// address. Two such shoots at a time would meet in the seed's kube-system. It is up to the caller to delete the shoot; Down
// removes it with the seed. It fails before Up.
func GardenletOf(ctx context.Context, t *kind.Testbed, name string) (*gardenlet.Gardenlet, error) {
	if t.Gardenlet == nil {
		return nil, fmt.Errorf("shoot %s: bring the testbed up first", name)
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
