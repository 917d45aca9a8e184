package pull

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// Push makes an image of random content, which exists nowhere else and which a pod can run, and
// puts it into an upstream. It needs Up or Attach. A mistake in the options is a
// *pull.InvalidError, and nothing was pushed.
func Push(ctx context.Context, t *kind.Testbed, options PushOptions) (*Pushed, error) {
	target, err := options.Target(t.Upstreams.Hosts(), "testbed/"+strings.ToLower(rand.Text()[:10]))
	if err != nil {
		return nil, err
	}
	registry := t.Upstream(target.Host)
	var pushed *Pushed
	step := fmt.Sprintf("push to %s", registry.Reference(target.Repository, target.Tag))
	err = t.Recorder.Step(ctx, step, func(ctx context.Context) error {
		return withImage(ctx, t, registry, target, func(img v1.Image) error {
			if _, err := registry.Push(ctx, target.Repository, target.Tag, img); err != nil {
				return err
			}
			var err error
			pushed, err = describePushed(registry.Reference(target.Repository, target.Tag), img)
			return err
		})
	})
	return pushed, err
}

// withImage makes the image of the target. What it has of its base is read while use runs.
func withImage(ctx context.Context, t *kind.Testbed, registry *upstream.Registry, target *Target, use func(v1.Image) error) error {
	if target.BaseRepository != "" {
		return registry.Describe(ctx, target.BaseRepository, target.BaseIdentifier, func(_ *v1.Descriptor, base v1.Image) error {
			img, err := image.Extend(base, target.Layers, target.LayerBytes)
			if err != nil {
				return err
			}
			return use(img)
		})
	}
	pause, err := t.Build(ctx, image.Pause())
	if err != nil {
		return fmt.Errorf("build the program of the image: %w", err)
	}
	img, err := image.Random(pause[0], target.Layers, target.LayerBytes)
	if err != nil {
		return err
	}
	return use(img)
}

func describePushed(reference string, img v1.Image) (*Pushed, error) {
	objects, err := Describe(nil, img)
	if err != nil {
		return nil, err
	}
	pushed := &Pushed{Reference: reference, Digest: objects[0].Digest, Objects: objects}
	for _, object := range objects {
		pushed.Bytes += object.Size
	}
	return pushed, nil
}
