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

// CacheImage is our own image, the one that Up installs the extension with.
func CacheImage(t *kind.Testbed) image.Built { return t.Images[kind.ImageCache] }

// UseCacheImage installs the extension so that caches run from the image, which the nodes of the shoot must have: what an
// operator does by the image vector overwrite. The clean-up of nodes stays with our own image. Caches that run change at
// the next reconciliation of the Shoot. The next Up goes back to CacheImage.
func UseCacheImage(ctx context.Context, t *kind.Testbed, cache image.Built) error {
	return reinstall(ctx, t, charts.Extension(), chartValues(t, cache))
}

// InstallStopped installs the extension from the directory of an older chart, without a replica: the seed is left as an older
// version left it, and nobody reconciles. Images are those of now. UseCacheImage installs the chart of now over it, and so does
// the next Up.
func InstallStopped(ctx context.Context, t *kind.Testbed, chart fs.FS) error {
	values := chartValues(t, CacheImage(t))
	values["replicaCount"] = 0
	return reinstall(ctx, t, chart, values)
}

// reinstall installs the extension over what runs of it.
func reinstall(ctx context.Context, t *kind.Testbed, chart fs.FS, values map[string]any) error {
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	return installExtension(ctx, t, seed, registration, chart, values)
}

// installExtension installs the extension and returns when it can be used.
func installExtension(ctx context.Context, t *kind.Testbed, seed kubernetes.Interface, registration *gardencorev1beta1.ControllerRegistration,
	chart fs.FS, values map[string]any) error {
	extension := gardener.Extension{Name: kind.ExtensionName, Registration: registration, Chart: chart, Values: values}
	if err := extension.Deploy(ctx, seed); err != nil {
		return err
	}
	return extension.Wait(ctx, seed.Client())
}

// chartValues are what an operator writes into the ControllerDeployment to run images of his own.
func chartValues(t *kind.Testbed, cache image.Built) map[string]any {
	return map[string]any{
		"image": map[string]any{"ref": t.Images[kind.ImageExtension].Ref},
		"imageVectorOverwrite": map[string]any{"images": []any{
			map[string]any{"name": charts.ImageRegistryCache, "ref": cache.Ref},
			map[string]any{"name": charts.ImageRegistryCleaner, "ref": CacheImage(t).Ref},
		}},
	}
}

// StockCacheImage builds distribution's stock image and loads it onto the nodes of the shoot, for UseCacheImage. The first
// time it compiles for a minute or two and fetches Go modules.
func StockCacheImage(ctx context.Context, t *kind.Testbed) (image.Built, error) {
	built, err := t.Build(ctx, distribution.Binary(t.Root))
	if err != nil {
		return image.Built{}, err
	}
	return built[0], image.Load(ctx, t.Shoot.Nodes(), built)
}
