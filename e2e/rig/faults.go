//go:build e2e

package rig

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// Break injects a fault (kind/fault), which lasts until the scenario ends or ClearFaults is called.
func (p *Run) Break(ctx context.Context, target string, kind spec.Kind) {
	p.Helper()
	p.BreakWith(ctx, target, kind, nil)
}

// BreakWith is like Break, but the fault has options.
func (p *Run) BreakWith(ctx context.Context, target string, kind spec.Kind, options map[string][]string) {
	p.Helper()
	wanted, err := spec.New(target, string(kind), options)
	p.Check(err)
	p.BreakAs(ctx, wanted)
}

// BreakAs is like Break, but takes a whole fault.
func (p *Run) BreakAs(ctx context.Context, wanted spec.Fault) {
	p.Helper()
	p.Afterwards(ctx, func(ctx context.Context) error { return ClearFaults(ctx, p) })
	_, err := fault.Add(ctx, p.Session.Testbed, wanted)
	p.Check(err)
}

// ClearFaults removes all faults.
func ClearFaults(ctx context.Context, p *Run) error {
	_, err := fault.Delete(ctx, p.Session.Testbed)
	return err
}
