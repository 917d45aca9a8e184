package bringup

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// buildImages builds the binaries that every testbed needs, and their images.
func buildImages(ctx context.Context, t *kind.Testbed) (image.Set, error) {
	if err := t.NotePlanted(); err != nil {
		return nil, err
	}
	built, err := t.Build(ctx, kind.Binaries()...)
	if err != nil {
		return nil, err
	}
	all := image.Set{}
	for _, b := range built {
		all[b.Name] = b
	}
	return all, nil
}
