package fault

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// answers is a fault of an upstream's own answers.
type answers struct {
	registry *upstream.Registry
	fault    spec.Fault
}

func (a answers) Available(context.Context) error {
	if a.registry == nil || !a.registry.Running() {
		return upstream.ErrNotRunning
	}
	return nil
}

func (a answers) Inject(ctx context.Context) error {
	return a.change(ctx, func(all []spec.Fault) []spec.Fault { return append(all, a.fault) })
}

func (a answers) Clear(ctx context.Context) error {
	return a.change(ctx, func(all []spec.Fault) []spec.Fault {
		return slices.DeleteFunc(all, func(f spec.Fault) bool { return f.ID == a.fault.ID })
	})
}

func (a answers) change(ctx context.Context, to func([]spec.Fault) []spec.Fault) error {
	all, err := a.registry.Faults(ctx)
	if err != nil {
		return err
	}
	return a.registry.SetFaults(ctx, to(all)...)
}

// expired lets an upstream show its certificate as one whose time is over. The key stays where it is.
func expireCertificate(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	registry := t.Upstream(f.Target.Name)
	if err := (answers{registry, f}).Available(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Target, err)
	}
	good, err := registry.Certificate(ctx)
	if err != nil {
		return nil, err
	}
	over, err := t.CA.Expired(good)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", f.Target, err)
	}
	f.Certificate = string(over)
	return answers{registry, f}, nil
}
