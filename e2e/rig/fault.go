//go:build e2e

package rig

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// Break brings a fault about, see kind/fault, until the scenario ends or Mend.
func (p *Run) Break(ctx context.Context, target string, kind spec.Kind) {
	p.Helper()
	wanted, err := spec.New(target, string(kind), nil)
	p.Check(err)
	p.Afterwards(ctx, func(ctx context.Context) error { return clearFaults(ctx, p) })
	_, err = fault.Add(ctx, p.Session.Testbed, wanted)
	p.Check(err)
}

// Mend ends all faults.
func (p *Run) Mend(ctx context.Context) {
	p.Helper()
	p.Check(clearFaults(ctx, p))
}

func clearFaults(ctx context.Context, p *Run) error {
	_, err := fault.Clear(ctx, p.Session.Testbed)
	return err
}
