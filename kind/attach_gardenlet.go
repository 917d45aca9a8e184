package kind

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// AttachGardenlet is AttachRunning, and prepares Gardenlet for the shoot that is there: gardener-node-agent is built, which is quick
// where Up has built it from the same code, and so is the image of gardener-resource-manager, which the seed's node gets if it lacks
// it. Nothing is installed. Its garden is in a file of the testbed's state: what was put there by another process is found again,
// until Up or Down. Who calls it has to hold the testbed's lock.
func (t *Testbed) AttachGardenlet(ctx context.Context) error {
	if err := t.AttachRunning(ctx); err != nil {
		return err
	}
	if err := markProcesses(t.prefix); err != nil {
		return fmt.Errorf("mark the processes of the testbed: %w", err)
	}
	var err error
	if t.log, err = t.state.openLog(); err != nil {
		return err
	}
	if err := t.buildForGardenlet(ctx); err != nil {
		return err
	}
	seed, shoot, err := t.clients()
	if err != nil {
		return err
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.gardenlet, err = t.newGardenlet(seed, shoot, registration); err != nil {
		return err
	}
	t.gardenlet.Garden, err = gardener.OpenGarden(t.state.garden(), registration)
	return err
}

// buildForGardenlet builds what gardenlet brings into a shoot.
func (t *Testbed) buildForGardenlet(ctx context.Context) error {
	needed := slices.DeleteFunc(binaries(), func(b image.Binary) bool {
		return b.Name != ImageResourceManager && b.Name != ImageNodeAgent
	})
	built, err := t.build(ctx, needed...)
	if err != nil {
		return err
	}
	t.images = images{}
	for _, b := range built {
		t.images[b.Name] = b
	}
	return loadImages(ctx, t.seed.Nodes(), t.images.pick(ImageResourceManager))
}

// clients connects to both clusters.
func (t *Testbed) clients() (seed, shoot kubernetes.Interface, err error) {
	if seed, err = gardener.NewSeedClient(t.seed.RESTConfig()); err != nil {
		return nil, nil, fmt.Errorf("connect to the seed: %w", err)
	}
	if shoot, err = gardener.NewShootClient(t.shoot.RESTConfig()); err != nil {
		return nil, nil, fmt.Errorf("connect to the shoot: %w", err)
	}
	return seed, shoot, nil
}
