package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// Delete ends the faults with these IDs, or all without IDs, and returns those that it has ended.
// For an unknown ID it ends none and returns a *spec.UseError. It continues after a failure.
func Delete(ctx context.Context, t *kind.Testbed, ids ...string) ([]spec.Fault, error) {
	unlock, err := lockFaults(ctx, t)
	if err != nil {
		return nil, err
	}
	defer unlock()
	active, failed := activeFaults(ctx, t)
	chosen, err := spec.Select(active, ids)
	if err != nil {
		return nil, errors.Join(err, failed)
	}
	var deleted []spec.Fault
	for _, f := range chosen {
		if err := deleteActive(ctx, t, f); err != nil {
			failed = errors.Join(failed, fmt.Errorf("clear fault %s: %w", f.ID, err))
			continue
		}
		deleted = append(deleted, f)
	}
	return deleted, failed
}

func deleteActive(ctx context.Context, t *kind.Testbed, f spec.Fault) error {
	injection, err := activeInjection(ctx, t, f)
	if err != nil {
		return err
	}
	return deleteInjection(ctx, f, injection)
}

// PlanDelete returns what Delete would do, one line for each fault.
func PlanDelete(ctx context.Context, t *kind.Testbed, ids ...string) ([]string, error) {
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
