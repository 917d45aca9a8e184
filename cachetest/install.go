package cachetest

import (
	"context"
	"io/fs"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// Image returns this repository's image for caches. Up configures the extension to use it.
func Image(t *kind.Testbed) image.Built { return t.Images[imageCache] }

// UseImage makes the extension use another image for caches, until the next Up. The shoot's nodes
// must have that image. Running caches change when the Shoot is reconciled.
func UseImage(ctx context.Context, t *kind.Testbed, cache image.Built) error {
	return bringup.Install(ctx, t, t.Extension.Chart, values(t.Images, cache))
}

// InstallStopped installs the extension from an older chart, with current images and no replicas.
// This simulates a seed before an update. UseImage and Up then update to the current chart.
func InstallStopped(ctx context.Context, t *kind.Testbed, chart fs.FS) error {
	values := values(t.Images, Image(t))
	values["replicaCount"] = 0
	delete(values, "controllers") // the older chart might not know the value
	return bringup.Install(ctx, t, chart, values)
}

// StockImage builds distribution's stock image, loads it onto the nodes, and returns the image.
func StockImage(ctx context.Context, t *kind.Testbed) (image.Built, error) {
	built, err := t.Build(ctx, image.Distribution(t.Root))
	if err != nil {
		return image.Built{}, err
	}
	return built[0], image.Load(ctx, t.Shoot.Workers(), built)
}
