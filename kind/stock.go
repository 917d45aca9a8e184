package kind

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/distribution"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// StockCacheImage builds distribution's stock image and loads it onto the nodes of the shoot, for UseCacheImage. The first
// time it compiles for a minute or two and fetches Go modules.
func (t *Testbed) StockCacheImage(ctx context.Context) (image.Built, error) {
	built, err := t.build(ctx, distribution.Binary(t.root))
	if err != nil {
		return image.Built{}, err
	}
	return built[0], loadImages(ctx, t.shoot.Nodes(), built)
}

// CacheImage is our own image, the one that Up installs the extension with.
func (t *Testbed) CacheImage() image.Built { return t.images[imageCache] }

// UseCacheImage installs the extension so that caches run from the image, which the nodes of the shoot must have: what an
// operator does by the image vector overwrite. The clean-up of nodes stays with our own image. Caches that run change at
// the next reconciliation of the Shoot. The next Up goes back to CacheImage.
func (t *Testbed) UseCacheImage(ctx context.Context, cache image.Built) error {
	seed, err := gardener.NewSeedClient(t.seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	return t.installExtension(ctx, seed, registration, cache)
}
