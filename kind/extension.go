package kind

import (
	"context"
	"fmt"
	"io/fs"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// extensionName is the name of the extension's ControllerInstallation and chart.
const extensionName = v1alpha3.ExtensionType

// ExtensionNamespace is the namespace of the seed in which the extension runs. What its service accounts ask the seed's
// API server is in the audit log of the cluster.
const ExtensionNamespace = "extension-" + extensionName

// CacheImage is our own image, the one that Up installs the extension with.
func (t *Testbed) CacheImage() image.Built { return t.images[imageCache] }

// UseCacheImage installs the extension so that caches run from the image, which the nodes of the shoot must have: what an
// operator does by the image vector overwrite. The clean-up of nodes stays with our own image. Caches that run change at
// the next reconciliation of the Shoot. The next Up goes back to CacheImage.
func (t *Testbed) UseCacheImage(ctx context.Context, cache image.Built) error {
	return t.reinstall(ctx, charts.Extension(), t.chartValues(cache))
}

// InstallStopped installs the extension from the directory of an older chart, without a replica: the seed is left as an older
// version left it, and nobody reconciles. Images are those of now. UseCacheImage installs the chart of now over it, and so does
// the next Up.
func (t *Testbed) InstallStopped(ctx context.Context, chart fs.FS) error {
	values := t.chartValues(t.CacheImage())
	values["replicaCount"] = 0
	return t.reinstall(ctx, chart, values)
}

// reinstall installs the extension over what runs of it.
func (t *Testbed) reinstall(ctx context.Context, chart fs.FS, values map[string]any) error {
	seed, err := gardener.NewSeedClient(t.seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	return t.installExtension(ctx, seed, registration, chart, values)
}

// installExtension installs the extension and returns when it can be used.
func (t *Testbed) installExtension(ctx context.Context, seed kubernetes.Interface, registration *gardencorev1beta1.ControllerRegistration,
	chart fs.FS, values map[string]any) error {
	extension := gardener.Extension{Name: extensionName, Registration: registration, Chart: chart, Values: values}
	if err := extension.Deploy(ctx, seed); err != nil {
		return err
	}
	return extension.Wait(ctx, seed.Client())
}

// chartValues are what an operator writes into the ControllerDeployment to run images of his own.
func (t *Testbed) chartValues(cache image.Built) map[string]any {
	return map[string]any{
		"image": map[string]any{"ref": t.images[imageExtension].Ref},
		"imageVectorOverwrite": map[string]any{"images": []any{
			map[string]any{"name": charts.ImageRegistryCache, "ref": cache.Ref},
			map[string]any{"name": charts.ImageRegistryCleaner, "ref": t.CacheImage().Ref},
		}},
	}
}
