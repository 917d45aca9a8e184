// Package fault adds, lists and deletes faults of the testbed. The table in package spec lists
// them. Upstreams change their own answers (package server). Most other faults are functions of
// node.sh.
//
// Active faults are stored where they are applied: in the containers of the upstreams and on the
// nodes. The package must not import commands that use it.
package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	faultTimeout        = time.Minute      // to add, list or end one fault
	machineFaultTimeout = 6 * time.Minute  // to add or end a fault whose end starts a machine
	lockTimeout         = 30 * time.Second // to wait for another command that changes faults
)

// Add applies a fault and returns it with its ID and its times. The fault lasts for its duration or
// until Delete, even if this process ends. A restart of a node ends its faults, and Down ends all
// faults. If the injection fails, Add ends the fault. Add returns a *spec.UsageError for an unknown
// target.
func Add(ctx context.Context, t *kind.Testbed, wanted spec.Fault) (spec.Fault, error) {
	ctx, cancel := progress.Within(ctx, timeoutOf(wanted), "the fault was not added")
	defer cancel()
	unlock, err := lockFaults(ctx, t)
	if err != nil {
		return wanted, err
	}
	defer unlock()
	active, err := readFaults(ctx, t, "list")
	if err != nil {
		return wanted, err
	}
	if wanted.Target, err = resolveTarget(ctx, t, wanted.Target); err != nil {
		return wanted, err
	}
	begun := wanted.Begin(spec.NextID(active), time.Now())
	injection, err := prepare(ctx, t, begun)
	if err != nil {
		return wanted, err
	}
	if err := injection.Inject(ctx); err != nil {
		err = fmt.Errorf("%s of %s: %w", begun.Kind, begun.Target, err)
		return wanted, errors.Join(err, deleteInjection(context.WithoutCancel(ctx), begun, injection))
	}
	if result, ok := injection.(interface{ Outcome() string }); ok {
		begun.Outcome = result.Outcome()
	}
	return begun, nil
}

func timeoutOf(f spec.Fault) time.Duration {
	if f.Kind == spec.Loss {
		return machineFaultTimeout
	}
	return faultTimeout
}

// List returns the active faults in the order of their start, and an error if some could not be
// read. It takes no lock: it may miss a fault that another command is adding.
func List(ctx context.Context, t *kind.Testbed) ([]spec.Fault, error) {
	if t.Seed == nil || t.Shoot == nil {
		return nil, kind.ErrDown
	}
	return readFaults(ctx, t, "look")
}

// readFaults reads the faults of all upstreams and nodes. On each node it runs script with the
// argument look, or list, which also removes the remains of inactive faults. For list, the caller
// must hold the lock of lockFaults.
func readFaults(ctx context.Context, t *kind.Testbed, argument string) ([]spec.Fault, error) {
	ctx, cancel := progress.Within(ctx, faultTimeout, "the faults were not listed")
	defer cancel()
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		all    []spec.Fault
		failed error
	)
	read := func(from func(context.Context) ([]spec.Fault, error)) {
		group.Go(func() {
			found, err := from(ctx)
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, found...), errors.Join(failed, err)
		})
	}
	for _, registry := range t.Upstreams.All() {
		read(registry.Faults)
	}
	for _, node := range t.Nodes() {
		read(func(ctx context.Context) ([]spec.Fault, error) { return nodeFaults(ctx, node, argument) })
	}
	group.Wait()
	slices.SortFunc(all, func(a, b spec.Fault) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) })
	// Several nodes may have the same fault.
	return slices.CompactFunc(all, func(a, b spec.Fault) bool { return a.ID == b.ID }), failed
}

func nodeFaults(ctx context.Context, node *cluster.Node, argument string) ([]spec.Fault, error) {
	output, err := runScript(ctx, node, argument)
	if err != nil {
		return nil, fmt.Errorf("list faults: %w", err)
	}
	found, err := parse(output)
	if err != nil {
		return nil, fmt.Errorf("on %s: %w", node.Name(), err)
	}
	return found, nil
}

// lockFaults locks a file in the state folder. Commands hold this lock while they change faults.
func lockFaults(ctx context.Context, t *kind.Testbed) (unlock func(), err error) {
	if t.Seed == nil || t.Shoot == nil {
		return nil, kind.ErrDown
	}
	unlock, err = file.Lock(ctx, filepath.Join(string(t.State), "faults.lock"), lockTimeout)
	if err != nil {
		return nil, lockFailure(ctx, t.Prefix, err)
	}
	return unlock, nil
}

// lockFailure wraps an error of file.Lock. It blames another command only if ctx has not ended.
func lockFailure(ctx context.Context, prefix string, err error) error {
	if ctx.Err() == nil && errors.Is(err, file.ErrLocked) {
		return fmt.Errorf("another command changes the faults of testbed %s: %w", prefix, err)
	}
	return fmt.Errorf("lock the faults of testbed %s: %w", prefix, err)
}

// Delete ends the faults with these IDs, or all faults if there are no IDs. It returns the faults
// that it has ended. If an ID is unknown, Delete ends no fault and returns a *spec.UsageError. If
// one fault cannot be ended, Delete continues with the others.
func Delete(ctx context.Context, t *kind.Testbed, ids ...string) ([]spec.Fault, error) {
	unlock, err := lockFaults(ctx, t)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, failed := readFaults(ctx, t, "list")
	chosen, err := spec.Select(all, ids)
	if err != nil {
		return nil, errors.Join(err, failed)
	}
	var deleted []spec.Fault
	for _, f := range chosen {
		injection, err := active(t, f)
		if err == nil {
			err = deleteInjection(ctx, f, injection)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("delete fault %s: %w", f.ID, err))
			continue
		}
		deleted = append(deleted, f)
	}
	return deleted, failed
}

func deleteInjection(ctx context.Context, f spec.Fault, injection kind.Injection) error {
	ctx, cancel := progress.Within(ctx, timeoutOf(f), "the fault did not end")
	defer cancel()
	return injection.Clear(ctx)
}
