package bringup

import (
	"context"
	"fmt"
	"io/fs"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/distribution"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// installGardener installs the parts of Gardener into both clusters, and the extension as gardenlet
// does.
func installGardener(ctx context.Context, t *kind.Testbed) error {
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.Gardenlet, err = t.NewGardenlet(registration); err != nil {
		return err
	}
	return inOrder(ctx, t,
		step("images on the nodes", loadImages),
		step("gardener in the seed", installSeed),
		step("priority classes in the shoot", func(ctx context.Context, t *kind.Testbed) error {
			return gardener.InstallPriorityClasses(ctx, t.Gardenlet.Shoot.Client())
		}),
		step("extension", func(ctx context.Context, t *kind.Testbed) error {
			return installExtension(ctx, t.Gardenlet.Seed, registration, charts.Extension(), chartValues(t, CacheImage(t)))
		}),
	)
}

// installSeed installs the CRDs, the seed's own gardener-resource-manager and the OS extension.
func installSeed(ctx context.Context, t *kind.Testbed) error {
	manager := gardener.SeedResourceManager(t.Images[kind.ImageResourceManager].Ref)
	osExtension := gardener.OSExtension{Image: t.Images[kind.ImageOSExtension].Ref}
	seed := t.Gardenlet.Seed.Client()
	err := inOrder(ctx, seed, gardener.InstallCRDs, gardener.InstallSeedPriorityClasses, gardener.EnsureGardenNamespace,
		manager.Deploy, osExtension.Deploy)
	if err != nil {
		return err
	}
	if err := manager.Wait(ctx, seed); err != nil {
		return err
	}
	return osExtension.Wait(ctx, seed)
}

// CacheImage returns the cache image of this repository, which Up installs the extension with.
func CacheImage(t *kind.Testbed) image.Built { return t.Images[kind.ImageCache] }

// UseCacheImage installs the extension with another image for caches, as an operator does with an
// image vector overwrite. The shoot's nodes must have the image. The clean-up of nodes still uses
// CacheImage. Running caches change at the next reconciliation of the Shoot. The next Up returns to
// CacheImage.
func UseCacheImage(ctx context.Context, t *kind.Testbed, cache image.Built) error {
	return reinstall(ctx, t, charts.Extension(), chartValues(t, cache))
}

// InstallStopped installs the extension from the folder of an older chart, with current images and
// without replicas: the seed is as an older version left it, and nothing reconciles. UseCacheImage
// and the next Up install the current chart over it.
func InstallStopped(ctx context.Context, t *kind.Testbed, chart fs.FS) error {
	values := chartValues(t, CacheImage(t))
	values["replicaCount"] = 0
	return reinstall(ctx, t, chart, values)
}

// reinstall installs the extension over a running one.
func reinstall(ctx context.Context, t *kind.Testbed, chart fs.FS, values map[string]any) error {
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	return installExtension(ctx, seed, registration, chart, values)
}

// installExtension installs the extension and waits until it is ready.
func installExtension(ctx context.Context, seed kubernetes.Interface, registration *gardencorev1beta1.ControllerRegistration,
	chart fs.FS, values map[string]any) error {
	extension := gardener.Extension{Name: kind.ExtensionName, Registration: registration, Chart: chart, Values: values}
	if err := extension.Deploy(ctx, seed); err != nil {
		return err
	}
	return extension.Wait(ctx, seed.Client())
}

// chartValues returns the values that an operator sets in the ControllerDeployment to use other
// images.
func chartValues(t *kind.Testbed, cache image.Built) map[string]any {
	return map[string]any{
		"image": map[string]any{"ref": t.Images[kind.ImageExtension].Ref},
		"imageVectorOverwrite": map[string]any{"images": []any{
			map[string]any{"name": charts.ImageRegistryCache, "ref": cache.Ref},
			map[string]any{"name": charts.ImageRegistryCleaner, "ref": CacheImage(t).Ref},
		}},
	}
}

// StockCacheImage builds distribution's stock image and loads it onto the shoot's nodes, for
// UseCacheImage. The first build downloads Go modules and compiles for a minute or two.
func StockCacheImage(ctx context.Context, t *kind.Testbed) (image.Built, error) {
	built, err := t.Build(ctx, distribution.Binary(t.Root))
	if err != nil {
		return image.Built{}, err
	}
	return built[0], image.Load(ctx, t.Shoot.Nodes(), built)
}
