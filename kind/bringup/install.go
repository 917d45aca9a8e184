package bringup

import (
	"context"

	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// installGardener installs what Gardener brings into both clusters, and the extension as gardenlet does.
func installGardener(ctx context.Context, t *kind.Testbed) error {
	seed, shoot, err := t.Clients()
	if err != nil {
		return err
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.Gardenlet, err = t.NewGardenlet(seed, shoot, registration); err != nil {
		return err
	}
	return progress.InOrder(ctx,
		t.Step("images on the nodes", func(ctx context.Context) error { return distributeImages(ctx, t) }),
		t.Step("gardener in the seed", func(ctx context.Context) error { return installSeed(ctx, t, seed) }),
		t.Step("priority classes in the shoot", func(ctx context.Context) error {
			return gardener.InstallPriorityClasses(ctx, shoot.Client())
		}),
		t.Step("extension", func(ctx context.Context) error {
			return installExtension(ctx, t, seed, registration, charts.Extension(), chartValues(t, CacheImage(t)))
		}),
	)
}

// distributeImages loads each image onto the nodes that run it. The seed's node runs the caches of shoots of GardenletOf.
func distributeImages(ctx context.Context, t *kind.Testbed) error {
	return progress.AtOnce(ctx,
		func(ctx context.Context) error {
			return image.Load(ctx, t.Seed.Nodes(), t.Images.Pick(kind.ImageExtension, kind.ImageOSExtension, kind.ImageResourceManager, kind.ImageCache))
		},
		func(ctx context.Context) error {
			return image.Load(ctx, t.Shoot.Nodes(), t.Images.Pick(kind.ImageCache))
		},
	)
}

// installSeed installs the resource definitions, the seed's own gardener-resource-manager and the OS extension.
func installSeed(ctx context.Context, t *kind.Testbed, seed kubernetes.Interface) error {
	manager := gardener.SeedResourceManager(t.Images[kind.ImageResourceManager].Ref)
	operatingSystem := gardener.OSExtension{Image: t.Images[kind.ImageOSExtension].Ref}
	return progress.InOrder(ctx,
		func(ctx context.Context) error { return gardener.InstallCRDs(ctx, seed.Client()) },
		func(ctx context.Context) error { return gardener.InstallSeedPriorityClasses(ctx, seed.Client()) },
		func(ctx context.Context) error { return gardener.EnsureGardenNamespace(ctx, seed.Client()) },
		func(ctx context.Context) error { return manager.Deploy(ctx, seed.Client()) },
		func(ctx context.Context) error { return operatingSystem.Deploy(ctx, seed.Client()) },
		func(ctx context.Context) error { return manager.Wait(ctx, seed.Client()) },
		func(ctx context.Context) error { return operatingSystem.Wait(ctx, seed.Client()) },
	)
}
