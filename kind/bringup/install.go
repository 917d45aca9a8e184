package bringup

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// installGardener installs what gardenlet expects in the shoot, starts the permanent gardenlet of a
// garden, and installs the extension.
func installGardener(ctx context.Context, t *kind.Testbed) error {
	var err error
	if t.Gardenlet, err = t.NewGardenlet(ctx); err != nil {
		return err
	}
	return inOrder(ctx, t,
		step("priority classes in the shoot", func(ctx context.Context, t *kind.Testbed) error {
			return gardener.InstallPriorityClasses(ctx, t.Gardenlet.Shoot.Client())
		}),
		inGarden(t, "custom resources in the shoot", func(ctx context.Context, t *kind.Testbed) error {
			return gardener.InstallShootCRDs(ctx, t.Gardenlet.Shoot.Client())
		}),
		inGarden(t, "gardenlet", startGardenlet),
		step("extension", func(ctx context.Context, t *kind.Testbed) error {
			values := map[string]any{}
			if t.Extension.Values != nil {
				values = t.Extension.Values(t.Images)
			}
			return Install(ctx, t, t.Extension.Chart, values)
		}),
	)
}

func installSeed(ctx context.Context, t *kind.Testbed) error {
	client, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	manager := gardener.SeedResourceManager(t.Images[kind.ImageResourceManager].Ref)
	osExtension := gardener.OSExtension{Image: t.Images[kind.ImageOSExtension].Ref}
	return inOrder(ctx, client.Client(), gardener.InstallCRDs, gardener.InstallSeedPriorityClasses, gardener.EnsureGardenNamespace,
		manager.Deploy, osExtension.Deploy, manager.Wait, osExtension.Wait)
}

// Install installs the extension from a chart, or updates it, and waits until it is ready. With a
// garden, Install offers the extension there. It then waits only if a Shoot has needed the
// extension before: gardenlet installs it when the first one does. The testbed must have a
// Gardenlet.
func Install(ctx context.Context, t *kind.Testbed, chart fs.FS, values map[string]any) error {
	seed := t.Gardenlet.Seed
	extension, err := t.Extension.Installation(chart, values)
	if err != nil {
		return err
	}
	if !t.Config.Garden {
		if err := extension.Deploy(ctx, seed); err != nil {
			return err
		}
		return extension.Wait(ctx, seed.Client())
	}
	if err := extension.Offer(ctx, t.Gardenlet.Garden, seed); err != nil {
		return err
	}
	installed, err := extension.Installed(ctx, seed.Client())
	if err != nil || installed == nil {
		return err
	}
	return installed.Wait(ctx, seed.Client())
}

func buildImages(ctx context.Context, t *kind.Testbed) error {
	return t.BuildImages(ctx, t.Binaries()...)
}

func loadSeed(ctx context.Context, t *kind.Testbed) error {
	onSeed := t.Extension.ImageNames(func(i kind.ExtensionImage) bool { return i.OnSeed })
	if t.Config.Garden {
		onSeed = append(onSeed, gardener.ControlPlanePrograms...)
	}
	return image.Load(ctx, t.Seed.Nodes(), t.Images.Pick(append(onSeed, kind.ImageOSExtension, kind.ImageResourceManager)...))
}

func loadShoot(ctx context.Context, t *kind.Testbed) error {
	onShoot := t.Extension.ImageNames(func(i kind.ExtensionImage) bool { return i.OnShoot })
	return image.Load(ctx, t.Shoot.Nodes(), t.Images.Pick(onShoot...))
}
