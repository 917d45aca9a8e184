package kind

import (
	"context"

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
