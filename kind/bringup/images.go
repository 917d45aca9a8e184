package bringup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// buildImages builds the binaries that every testbed needs, and their images.
func buildImages(ctx context.Context, t *kind.Testbed) error {
	if err := recordPlantedBug(t); err != nil {
		return err
	}
	built, err := t.Build(ctx, kind.Binaries()...)
	if err != nil {
		return err
	}
	t.Images = image.Set{}
	for _, b := range built {
		t.Images[b.Name] = b
	}
	return nil
}

// recordPlantedBug stores the name of the bug that Up is about to install. Without one it keeps the
// recorded name, until forgetPlantedBug: an earlier bug remains until everything is replaced.
func recordPlantedBug(t *kind.Testbed) error {
	if t.Planted == nil {
		return nil
	}
	return file.Replace(t.State.PlantedBug(), []byte(t.Planted.Name+"\n"), 0o644)
}

// forgetPlantedBug removes the recorded name, unless Up has just installed a bug.
func forgetPlantedBug(_ context.Context, t *kind.Testbed) error {
	if t.Planted != nil {
		return nil
	}
	if err := os.Remove(t.State.PlantedBug()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the planted bug: %w", err)
	}
	return nil
}

// loadImages loads each image onto the nodes that run it. The seed's node runs the caches of
// additional shoots.
func loadImages(ctx context.Context, t *kind.Testbed) error {
	return progress.AtOnce(ctx,
		func(ctx context.Context) error {
			return image.Load(ctx, t.Seed.Nodes(), t.Images.Pick(kind.ImageExtension, kind.ImageOSExtension, kind.ImageResourceManager, kind.ImageCache))
		},
		func(ctx context.Context) error {
			return image.Load(ctx, t.Shoot.Nodes(), t.Images.Pick(kind.ImageCache))
		},
	)
}
