package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// ErrDown reports that the testbed, or a part of it, does not exist. It is an environment error
// (see internal/program).
var ErrDown = &downError{}

type downError struct{}

func (*downError) Error() string { return "the testbed is not up: run `testbed up`" }

// EnvironmentError marks the error for internal/program.
func (*downError) EnvironmentError() {}

// StoppedError names the containers of a testbed that exist but do not run, as after a restart of
// the engine. It is an environment error (see internal/program).
type StoppedError struct{ Containers []string }

// EnvironmentError marks the error for internal/program.
func (*StoppedError) EnvironmentError() {}

// Error implements error.
func (e *StoppedError) Error() string {
	return "not running: " + strings.Join(e.Containers, ", ") + "; run `testbed up` to repair the testbed"
}

// Attach connects to a testbed that this process or another one has brought up. It sets Seed,
// Shoot, Upstreams and CA, but not Gardenlet. It verifies, changes and builds nothing, except that
// it restarts an engine that the testbed started and that has died.
//
// The error is an ErrDown if the testbed or a part of it does not exist, an *OtherCheckoutError if
// another checkout owns it, and an *engine.Missing if the engine exists but does not answer.
func (t *Testbed) Attach(ctx context.Context) error {
	if err := t.attachEngine(ctx); err != nil {
		return err
	}
	var err error
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

// AttachOnce is Attach, unless the testbed is attached already.
func (t *Testbed) AttachOnce(ctx context.Context) error {
	if t.Seed != nil && t.Shoot != nil {
		return nil
	}
	return t.Attach(ctx)
}

// AttachRunning is Attach, and fails with a *StoppedError if a node or an upstream does not run.
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
		return &StoppedError{stopped}
	}
	return nil
}

// AttachParts is Attach for a testbed that may be incomplete, and does not set CA. It attaches to
// the parts that exist. The error names those that do not.
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
	return t.CheckOwner(ctx)
}

func load(ctx context.Context, name, kubeconfig string) (*cluster.Cluster, error) {
	loaded, err := cluster.Load(ctx, name, kubeconfig)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil, fmt.Errorf("cluster %s not found: %w", name, ErrDown)
	}
	if errors.Is(err, fs.ErrNotExist) { // another checkout's orphan, or somebody removed the state
		return nil, fmt.Errorf("%w: %w", err, ErrDown)
	}
	if err != nil {
		return nil, err
	}
	return loaded, nil
}

func (t *Testbed) findUpstreams(ctx context.Context) error {
	registries, err := upstream.List(ctx, t.Prefix)
	if err != nil {
		return fmt.Errorf("list the upstreams of testbed %s: %w", t.Prefix, err)
	}
	t.Upstreams.Set(registries)
	return nil
}
