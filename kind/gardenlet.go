package kind

import (
	"context"
	"fmt"
	"os"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/process"
)

// AttachGardenlet is AttachRunning, and sets Gardenlet for the existing Shoot. It builds
// gardener-node-agent and the image of gardener-resource-manager, which is quick if Up built them
// from the same sources, and loads the image onto the seed's node if it lacks it. It installs
// nothing.
//
// The garden is a file in the testbed's state: it keeps what other processes stored there since the
// last Up. The caller must hold the testbed's lock.
func (t *Testbed) AttachGardenlet(ctx context.Context) error {
	if err := t.AttachRunning(ctx); err != nil {
		return err
	}
	if err := process.Mark(t.Prefix); err != nil {
		return fmt.Errorf("mark the child processes: %w", err)
	}
	var err error
	if t.Log, err = t.State.OpenLog(); err != nil {
		return err
	}
	if err := t.buildForGardenlet(ctx); err != nil {
		return err
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.Gardenlet, err = t.NewGardenlet(registration); err != nil {
		return err
	}
	t.Gardenlet.Garden, err = gardener.OpenGarden(t.State.Garden(), registration)
	return err
}

// buildForGardenlet builds what gardenlet deploys to a shoot.
func (t *Testbed) buildForGardenlet(ctx context.Context) error {
	needed := slices.DeleteFunc(Binaries(), func(b image.Binary) bool {
		return b.Name != ImageResourceManager && b.Name != ImageNodeAgent
	})
	built, err := t.Build(ctx, needed...)
	if err != nil {
		return err
	}
	t.Images = image.Set{}
	for _, b := range built {
		t.Images[b.Name] = b
	}
	return image.Load(ctx, t.Seed.Nodes(), t.Images.Pick(ImageResourceManager))
}

// NewGardenlet connects to both clusters and returns a gardenlet with an empty garden in memory.
// Seed, Shoot and Images must be set.
func (t *Testbed) NewGardenlet(registration *gardencorev1beta1.ControllerRegistration) (*gardenlet.Gardenlet, error) {
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("connect to the seed: %w", err)
	}
	shoot, err := gardener.NewShootClient(t.Shoot.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("connect to the shoot: %w", err)
	}
	binary, err := os.ReadFile(t.Images[ImageNodeAgent].Executable)
	if err != nil {
		return nil, fmt.Errorf("read gardener-node-agent: %w", err)
	}
	return &gardenlet.Gardenlet{
		Name:                 gardenlet.DefaultShoot,
		Seed:                 seed,
		Shoot:                shoot,
		ShootKubeconfig:      t.Shoot.InternalKubeconfig(),
		Garden:               gardener.NewGarden(registration),
		ResourceManagerImage: t.Images[ImageResourceManager].Ref,
		NodeAgentBinary:      binary,
		Machines:             machines(t.Shoot.Workers()),
		IPFamilies:           t.ipFamilies(),
		Log:                  t.Log,
	}, nil
}

func machines(nodes []*cluster.Node) []gardenlet.Machine {
	all := make([]gardenlet.Machine, 0, len(nodes))
	for _, node := range nodes {
		all = append(all, node)
	}
	return all
}
