package kind

import (
	"context"
	"fmt"
	"os"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/process"
)

// AttachGardenlet is AttachRunning, and prepares Gardenlet for the shoot that is there: gardener-node-agent is built, which is quick
// where Up has built it from the same code, and so is the image of gardener-resource-manager, which the seed's node gets if it lacks
// it. Nothing is installed. Its garden is in a file of the testbed's state: what was put there by another process is found again,
// until Up or Down. Who calls it has to hold the testbed's lock.
func (t *Testbed) AttachGardenlet(ctx context.Context) error {
	if err := t.AttachRunning(ctx); err != nil {
		return err
	}
	if err := process.Mark(t.Prefix); err != nil {
		return fmt.Errorf("mark the processes of the testbed: %w", err)
	}
	var err error
	if t.Log, err = t.State.OpenLog(); err != nil {
		return err
	}
	if err := t.buildForGardenlet(ctx); err != nil {
		return err
	}
	seed, shoot, err := t.Clients()
	if err != nil {
		return err
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.Gardenlet, err = t.NewGardenlet(seed, shoot, registration); err != nil {
		return err
	}
	t.Gardenlet.Garden, err = gardener.OpenGarden(t.State.Garden(), registration)
	return err
}

// buildForGardenlet builds what gardenlet brings into a shoot.
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

// clients connects to both clusters.
func (t *Testbed) Clients() (seed, shoot kubernetes.Interface, err error) {
	if seed, err = gardener.NewSeedClient(t.Seed.RESTConfig()); err != nil {
		return nil, nil, fmt.Errorf("connect to the seed: %w", err)
	}
	if shoot, err = gardener.NewShootClient(t.Shoot.RESTConfig()); err != nil {
		return nil, nil, fmt.Errorf("connect to the shoot: %w", err)
	}
	return seed, shoot, nil
}

func (t *Testbed) NewGardenlet(seed, shoot kubernetes.Interface,
	registration *gardencorev1beta1.ControllerRegistration) (*gardenlet.Gardenlet, error) {
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
