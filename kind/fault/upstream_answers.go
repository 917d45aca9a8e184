package fault

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

type upstreamAnswers struct {
	registry *upstream.Registry
	fault    spec.Fault
}

func changeAnswers(_ context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	return upstreamAnswers{t.Upstream(f.Target.Name), f}, nil
}

func (a upstreamAnswers) Available(context.Context) error {
	if a.registry == nil || !a.registry.Running() {
		return upstream.ErrNotRunning
	}
	return nil
}

func (a upstreamAnswers) Inject(ctx context.Context) error {
	return a.change(ctx, func(all []spec.Fault) []spec.Fault { return append(all, a.fault) })
}

func (a upstreamAnswers) Clear(ctx context.Context) error {
	return a.change(ctx, func(all []spec.Fault) []spec.Fault {
		return slices.DeleteFunc(all, func(f spec.Fault) bool { return f.ID == a.fault.ID })
	})
}

func (a upstreamAnswers) change(ctx context.Context, to func([]spec.Fault) []spec.Fault) error {
	all, err := a.registry.Faults(ctx)
	if err != nil {
		return err
	}
	return a.registry.SetFaults(ctx, to(all)...)
}

// expireCertificate makes an upstream present an expired certificate that the testbed's CA signed.
func expireCertificate(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	registry := t.Upstream(f.Target.Name)
	if err := (upstreamAnswers{registry, f}).Available(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Target, err)
	}
	good, err := registry.Certificate(ctx)
	if err != nil {
		return nil, err
	}
	expired, err := t.CA.Expired(good)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", f.Target, err)
	}
	f.Certificate = string(expired)
	return upstreamAnswers{registry, f}, nil
}
