package kind

import (
	"context"
	"io/fs"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/kind/distribution"
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

// StopAsOf installs the extension from an older directory of its chart, without a replica: the seed is left as an older version
// left it, and nobody reconciles. Images are those of now. UseCacheImage installs the chart of now over it, and so does the
// next Up.
func (t *Testbed) StopAsOf(ctx context.Context, chart fs.FS) error {
	values := chartValues(t.images[imageExtension], t.images[imageCache], t.images[imageCache])
	values["replicaCount"] = 0
	return t.installChart(ctx, chart, values)
}

// UseCacheImage installs the extension so that caches run from the image, which the nodes of the shoot must have: what an
// operator does by the image vector overwrite. The clean-up of nodes stays with our own image. Caches that run change at
// the next reconciliation of the Shoot. The next Up goes back to CacheImage.
func (t *Testbed) UseCacheImage(ctx context.Context, cache image.Built) error {
	return t.installChart(ctx, charts.Extension(), chartValues(t.images[imageExtension], cache, t.images[imageCache]))
}
