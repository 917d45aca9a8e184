package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// PlanFault is for AddFault and HoldFault.
func PlanAdd(ctx context.Context, t *kind.Testbed, wanted spec.Fault) ([]string, error) {
	var err error
	if wanted.Target, err = Resolve(ctx, t, wanted.Target); err != nil {
		return nil, err
	}
	injection, err := injectionOf(ctx, t, wanted)
	if err != nil {
		return nil, err
	}
	if err := injection.Available(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", wanted.Target, err)
	}
	return []string{fmt.Sprintf("break %s: it %s", wanted.Target, wanted.Effect())}, nil
}

// PlanClearFaults is for ClearFaults.
func PlanClear(ctx context.Context, t *kind.Testbed, ids ...string) ([]string, error) {
	active, failed := List(ctx, t)
	chosen, err := spec.Select(active, ids)
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	var lines []string
	for _, f := range chosen {
		lines = append(lines, fmt.Sprintf("clear %s: %s %s", f.ID, f.Target, f.Effect()))
	}
	return lines, nil
}
