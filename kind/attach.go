package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// Environment errors (see internal/program).
var (
	// ErrDown reports that the testbed, or a part of it, does not exist.
	ErrDown error = environmentError("the testbed is not up: run `testbed up`")
	// ErrBusy reports that another process is working on the same testbed: try again later.
	ErrBusy error = environmentError("another testbed command is working on it")
)

type environmentError string

func (e environmentError) Error() string   { return string(e) }
func (environmentError) EnvironmentError() {}

// StoppedError names containers that exist but do not run. It is an environment error.
type StoppedError struct {
	environmentError
	Containers []string
}

func (e *StoppedError) Error() string {
	return "not running: " + strings.Join(e.Containers, ", ") + "; run `testbed up` to repair the testbed"
}

// Attach connects to an existing testbed: it sets Engine, Seed, Shoot, Upstreams and CA. It
// restarts a dead Docker Engine that a testbed started, but does not verify or repair the rest.
//
// The error wraps ErrDown if the testbed or a part of it does not exist. It is an *engine.Missing
// if an engine may be running but does not answer.
func (t *Testbed) Attach(ctx context.Context) (err error) {
	if err := t.attachEngine(ctx); err != nil {
		return err
	}
	if t.Seed, err = load(ctx, t.SeedName(), t.State.SeedKubeconfig()); err != nil {
		return err
	}
	if t.Shoot, err = load(ctx, t.ShootName(), t.State.ShootKubeconfig()); err != nil {
		return err
	}
	if t.CA, err = certificate.Load(t.State.Certificates()); err != nil {
		return fmt.Errorf("%w (`testbed up` repairs that)", err)
	}
	return t.findUpstreams(ctx)
}

// AttachRunning calls Attach. It returns a *StoppedError if a node or an upstream does not run.
func (t *Testbed) AttachRunning(ctx context.Context) error {
	if err := t.Attach(ctx); err != nil {
		return err
	}
	var stopped []string
	for _, name := range []string{t.SeedName(), t.ShootName()} {
		nodes, err := cluster.StoppedNodes(ctx, name)
		if err != nil {
			return err
		}
		stopped = append(stopped, nodes...)
	}
	for _, registry := range t.Upstreams.All() {
		if !registry.Running() {
			stopped = append(stopped, fmt.Sprintf("%s (%s)", registry.Container(), registry.Status()))
		}
	}
	if len(stopped) > 0 {
		return &StoppedError{Containers: stopped}
	}
	return nil
}

// AttachParts attaches to the parts that exist. The error names the missing parts. CA is not set.
func (t *Testbed) AttachParts(ctx context.Context) error {
	if err := t.attachEngine(ctx); err != nil {
		return err
	}
	var seedErr, shootErr error
	t.Seed, seedErr = load(ctx, t.SeedName(), t.State.SeedKubeconfig())
	t.Shoot, shootErr = load(ctx, t.ShootName(), t.State.ShootKubeconfig())
	return errors.Join(seedErr, shootErr, t.findUpstreams(ctx))
}

func (t *Testbed) attachEngine(ctx context.Context) error {
	found, err := engine.Attach(ctx)
	if err != nil {
		return err
	}
	if found == nil {
		return ErrDown
	}
	t.Engine = found
	return nil
}

func load(ctx context.Context, name, kubeconfig string) (*cluster.Cluster, error) {
	loaded, err := cluster.Load(ctx, name, kubeconfig)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return nil, fmt.Errorf("cluster %s not found: %w", name, ErrDown)
	case errors.Is(err, fs.ErrNotExist): // the cluster exists, but its kubeconfig is not in this state folder
		return nil, fmt.Errorf("%w: %w", err, ErrDown)
	}
	return loaded, err
}

func (t *Testbed) findUpstreams(ctx context.Context) error {
	registries, err := upstream.List(ctx, t.Prefix)
	if err != nil {
		return fmt.Errorf("list the upstreams of testbed %s: %w", t.Prefix, err)
	}
	t.Upstreams.Set(registries)
	return nil
}

// AttachGardenlet calls AttachRunning and sets Gardenlet. The caller must hold the testbed's lock.
//
// With a garden, the Gardenlet is remote. Otherwise AttachGardenlet builds the binaries that
// gardenlet deploys for a Shoot, and loads the image of gardener-resource-manager onto the seed's
// node.
func (t *Testbed) AttachGardenlet(ctx context.Context) (err error) {
	if err := t.AttachRunning(ctx); err != nil {
		return err
	}
	if err := command.MarkChildren(t.Prefix); err != nil {
		return fmt.Errorf("mark the child processes: %w", err)
	}
	if t.Log, err = t.State.OpenLog(); err != nil {
		return err
	}
	if !t.Config.Garden {
		if err := t.buildForShoot(ctx); err != nil {
			return err
		}
	}
	t.Gardenlet, err = t.NewGardenlet(ctx)
	return err
}

// buildForShoot builds the binaries that gardenlet deploys for a Shoot, and loads the image of
// gardener-resource-manager onto the seed's node.
func (t *Testbed) buildForShoot(ctx context.Context) error {
	needed := slices.DeleteFunc(t.Binaries(), func(b image.Binary) bool {
		return b.Name != ImageResourceManager && b.Name != ImageNodeAgent
	})
	if err := t.BuildImages(ctx, needed...); err != nil {
		return err
	}
	return image.Load(ctx, t.Seed.Nodes(), t.Images.Pick(ImageResourceManager))
}

// ManageGarden runs the permanent gardenlet of a testbed with a garden (gardenlet.Manage) until ctx
// ends. bringup.Up starts one process for it, which bringup.Down and the next Up end.
func (t *Testbed) ManageGarden(ctx context.Context) (err error) {
	if err := t.CheckRole(RoleGarden); err != nil {
		return err
	}
	if err := t.AttachRunning(ctx); err != nil {
		return err
	}
	if t.Log, err = t.State.OpenLog(); err != nil {
		return err
	}
	if err := t.buildForShoot(ctx); err != nil {
		return err
	}
	if err := t.reachUpstreams(); err != nil {
		return err
	}
	manager, err := t.localGardenlet()
	if err != nil {
		return err
	}
	return manager.Manage(ctx)
}

// NewGardenlet returns a gardenlet for Seed and Shoot. With a garden, it is remote. Otherwise its
// garden is in memory, and contains the extension's registration and what the seed holds of it.
func (t *Testbed) NewGardenlet(ctx context.Context) (*gardenlet.Gardenlet, error) {
	if t.Config.Garden {
		garden, err := gardener.NewGardenClient(t.Seed.RESTConfig())
		if err != nil {
			return nil, err
		}
		remote, err := t.connectGardenlet()
		if err == nil {
			remote.Remote, remote.Garden = true, garden.Client()
		}
		return remote, err
	}
	registration, err := t.Extension.Registration()
	if err != nil {
		return nil, err
	}
	local, err := t.localGardenlet()
	if err != nil {
		return nil, err
	}
	local.Garden = gardener.NewGarden(registration)
	return local, local.Recall(ctx)
}

// localGardenlet returns a gardenlet that can run flows, without a garden.
func (t *Testbed) localGardenlet() (*gardenlet.Gardenlet, error) {
	binary, err := os.ReadFile(t.Images[ImageNodeAgent].Executable)
	if err != nil {
		return nil, fmt.Errorf("read gardener-node-agent: %w", err)
	}
	local, err := t.connectGardenlet()
	if err != nil {
		return nil, err
	}
	local.NodeAgentBinary, local.ResourceManagerImage = gardener.NewBinary(binary), t.Images[ImageResourceManager].Ref
	return local, nil
}

// connectGardenlet returns a gardenlet without a garden and programs.
func (t *Testbed) connectGardenlet() (*gardenlet.Gardenlet, error) {
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("connect to the seed: %w", err)
	}
	shoot, err := gardener.NewShootClient(t.Shoot.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("connect to the shoot: %w", err)
	}
	var machines []gardenlet.Machine
	for _, node := range t.Shoot.Workers() {
		machines = append(machines, node)
	}
	return &gardenlet.Gardenlet{
		Name: gardenlet.DefaultShoot, Seed: seed, Shoot: shoot, ShootKubeconfig: t.Shoot.InternalKubeconfig(),
		Machines: machines, IPFamilies: t.ipFamilies(), Log: t.Log,
	}, nil
}
