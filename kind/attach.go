package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// ErrDown says that there is no testbed to work with. It counts as a matter of the environment (internal/program).
var ErrDown = &downError{}

type downError struct{}

func (*downError) Error() string { return "the testbed is not up: `testbed up` brings it up" }

// EnvironmentError marks the error for internal/program.
func (*downError) EnvironmentError() {}

// Attach connects to a testbed that Up has brought up, in this process or another one: Seed, Shoot, Upstream and Authority can
// be used afterwards, Gardenlet cannot. Nothing is verified, changed or built, but for starting an engine of ours that has
// died. Without a testbed, or with a part of one, the error is an ErrDown; one of another directory is a *OtherCheckoutError, and an engine
// that is there and does not answer an *engine.Missing.
func (t *Testbed) Attach(ctx context.Context) error {
	found, err := engine.Attach(ctx)
	if err != nil {
		return err
	}
	if found == nil {
		return ErrDown
	}
	t.Engine = found
	if err := t.CheckOwner(ctx); err != nil {
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
	registries, err := upstream.List(ctx, t.Prefix)
	if err != nil {
		return fmt.Errorf("list the upstreams of testbed %s: %w", t.Prefix, err)
	}
	t.Upstreams.Set(registries)
	return nil
}

func load(ctx context.Context, name, kubeconfig string) (*cluster.Cluster, error) {
	loaded, err := cluster.Load(ctx, name, kubeconfig)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil, fmt.Errorf("cluster %s is not there: %w", name, ErrDown)
	}
	if errors.Is(err, fs.ErrNotExist) { // left by another directory, or the state was removed by hand
		return nil, fmt.Errorf("%w: %w", err, ErrDown)
	}
	return loaded, err
}

// attachOnce attaches unless Up or Attach was called before.
func (t *Testbed) AttachOnce(ctx context.Context) error {
	if t.Seed != nil && t.Shoot != nil {
		return nil
	}
	return t.Attach(ctx)
}

// attachParts is Attach for a testbed of which only a part may be there, without its Authority. The error names the parts that are
// not there.
func (t *Testbed) AttachParts(ctx context.Context) error {
	found, err := engine.Attach(ctx)
	if err != nil {
		return err
	}
	if found == nil {
		return ErrDown
	}
	t.Engine = found
	if err := t.CheckOwner(ctx); err != nil {
		return err
	}
	var failed error
	load := func(name, kubeconfig string) *cluster.Cluster {
		loaded, err := load(ctx, name, kubeconfig)
		if err != nil {
			failed = errors.Join(failed, err)
			return nil
		}
		return loaded
	}
	t.Seed = load(t.SeedName(), t.State.SeedKubeconfig())
	t.Shoot = load(t.ShootName(), t.State.ShootKubeconfig())
	registries, err := upstream.List(ctx, t.Prefix)
	if err != nil {
		return errors.Join(failed, fmt.Errorf("list the upstreams of testbed %s: %w", t.Prefix, err))
	}
	t.Upstreams.Set(registries)
	return failed
}
