package kind

import (
	"context"
	"fmt"
	"os"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// installGardener installs what Gardener brings into both clusters, and the extension as gardenlet does.
func (t *Testbed) installGardener(ctx context.Context) error {
	seed, shoot, err := t.clients()
	if err != nil {
		return err
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.gardenlet, err = t.newGardenlet(seed, shoot, registration); err != nil {
		return err
	}
	return inOrder(ctx,
		t.step("images on the nodes", t.distributeImages),
		t.step("gardener in the seed", func(ctx context.Context) error { return t.installSeed(ctx, seed) }),
		t.step("priority classes in the shoot", func(ctx context.Context) error {
			return gardener.InstallPriorityClasses(ctx, shoot.Client())
		}),
		t.step("extension", func(ctx context.Context) error {
			return t.installExtension(ctx, seed, registration, charts.Extension(), t.chartValues(t.CacheImage()))
		}),
	)
}

// distributeImages loads each image onto the nodes that run it. The seed's node runs the caches of shoots of GardenletOf.
func (t *Testbed) distributeImages(ctx context.Context) error {
	return atOnce(ctx,
		func(ctx context.Context) error {
			return loadImages(ctx, t.seed.Nodes(), t.images.pick(ImageExtension, ImageOSExtension, ImageResourceManager, ImageCache))
		},
		func(ctx context.Context) error {
			return loadImages(ctx, t.shoot.Nodes(), t.images.pick(ImageCache))
		},
	)
}

// installSeed installs the resource definitions, the seed's own gardener-resource-manager and the OS extension.
func (t *Testbed) installSeed(ctx context.Context, seed kubernetes.Interface) error {
	manager := gardener.SeedResourceManager(t.images[ImageResourceManager].Ref)
	operatingSystem := gardener.OSExtension{Image: t.images[ImageOSExtension].Ref}
	return inOrder(ctx,
		func(ctx context.Context) error { return gardener.InstallCRDs(ctx, seed.Client()) },
		func(ctx context.Context) error { return gardener.InstallSeedPriorityClasses(ctx, seed.Client()) },
		func(ctx context.Context) error { return gardener.EnsureGardenNamespace(ctx, seed.Client()) },
		func(ctx context.Context) error { return manager.Deploy(ctx, seed.Client()) },
		func(ctx context.Context) error { return operatingSystem.Deploy(ctx, seed.Client()) },
		func(ctx context.Context) error { return manager.Wait(ctx, seed.Client()) },
		func(ctx context.Context) error { return operatingSystem.Wait(ctx, seed.Client()) },
	)
}

func (t *Testbed) newGardenlet(seed, shoot kubernetes.Interface,
	registration *gardencorev1beta1.ControllerRegistration) (*gardenlet.Gardenlet, error) {
	binary, err := os.ReadFile(t.images[ImageNodeAgent].Executable)
	if err != nil {
		return nil, fmt.Errorf("read gardener-node-agent: %w", err)
	}
	return &gardenlet.Gardenlet{
		Name:                 gardenlet.FirstShoot,
		Seed:                 seed,
		Shoot:                shoot,
		ShootKubeconfig:      t.shoot.InternalKubeconfig(),
		Garden:               gardener.NewGarden(registration),
		ResourceManagerImage: t.images[ImageResourceManager].Ref,
		NodeAgentBinary:      binary,
		Machines:             machines(t.shoot.Workers()),
		IPFamilies:           t.ipFamilies(),
		Log:                  t.log,
	}, nil
}

func machines(nodes []*cluster.Node) []gardenlet.Machine {
	all := make([]gardenlet.Machine, 0, len(nodes))
	for _, node := range nodes {
		all = append(all, node)
	}
	return all
}
