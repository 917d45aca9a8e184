// Package fault adds, lists and deletes faults of the testbed. The table in package spec has all
// faults. An upstream changes its answers itself (package server), nodes run a function of node.sh.
//
// Active faults are stored where they are applied: in the containers of the upstreams and on the
// nodes. The package must not import commands that use it.
package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
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
// target, and for a fault that has a duration although only a command can end it (use Hold).
func Add(ctx context.Context, t *kind.Testbed, wanted spec.Fault) (spec.Fault, error) {
	if err := wanted.CheckTime(); err != nil {
		return wanted, err
	}
	ctx, cancel := progress.Within(ctx, timeoutOf(wanted), "the fault was not added")
	defer cancel()
	unlock, err := lockFaults(ctx, t)
	if err != nil {
		return wanted, err
	}
	defer unlock()
	active, err := activeFaults(ctx, t)
	if err != nil {
		return wanted, err
	}
	if wanted.Target, err = ResolveTarget(ctx, t, wanted.Target); err != nil {
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
	if result, ok := injection.(interface{ outcome() string }); ok {
		begun.Outcome = result.outcome()
	}
	return begun, nil
}

// PlanAdd returns what Add and Hold would do, as lines of text.
func PlanAdd(ctx context.Context, t *kind.Testbed, wanted spec.Fault) ([]string, error) {
	var err error
	if wanted.Target, err = ResolveTarget(ctx, t, wanted.Target); err != nil {
		return nil, err
	}
	if _, err := prepare(ctx, t, wanted); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("add fault: %s %s", wanted.Target, wanted.Effect())}, nil
}

func timeoutOf(f spec.Fault) time.Duration {
	if f.EndsOnlyByCommand() {
		return machineFaultTimeout
	}
	return faultTimeout
}

// Hold adds a fault, passes it to the function begun, and ends it when its duration or ctx ends. If
// this process is killed, the fault goes on, like one that was added by Add.
func Hold(ctx context.Context, t *kind.Testbed, wanted spec.Fault, begun func(spec.Fault) error) error {
	lasts := time.Duration(wanted.For)
	if wanted.EndsOnlyByCommand() {
		wanted.For = 0
	}
	held, err := Add(ctx, t, wanted)
	if err != nil {
		return err
	}
	if held.EndsOnlyByCommand() && lasts > 0 {
		held.For, held.Ends = spec.Duration(lasts), held.Began.Add(lasts)
	}
	failed := begun(held)
	if held.OneShot() {
		return failed
	}
	if failed == nil {
		var over <-chan time.Time // nil blocks forever
		if lasts > 0 {
			over = time.After(lasts)
		}
		select {
		case <-ctx.Done():
		case <-over:
		}
	}
	// Ctrl-C ends the wait, not the clean-up.
	if err := release(context.WithoutCancel(ctx), t, held); err != nil {
		return fmt.Errorf("delete fault %s: %w", held.ID, err)
	}
	return failed
}

// release ends the fault unless it has already ended. A new fault with the same ID stays.
func release(ctx context.Context, t *kind.Testbed, held spec.Fault) error {
	if removed, err := removed(ctx, t); removed || err != nil {
		return err
	}
	unlock, err := lockFaults(ctx, t)
	if err != nil {
		return err
	}
	defer unlock()
	active, err := activeFaults(ctx, t)
	if err == nil && !slices.ContainsFunc(active, held.Same) {
		return nil
	}
	return deleteActive(ctx, t, held)
}

// removed reports whether Down has removed the testbed with all faults. If a cluster exists but the
// state folder does not, it returns kind.ErrDown: a lock would recreate the folder.
func removed(ctx context.Context, t *kind.Testbed) (bool, error) {
	ctx, cancel := progress.Within(ctx, faultTimeout, "the nodes were not listed")
	defer cancel()
	_, err := os.Stat(string(t.State))
	stateless := errors.Is(err, fs.ErrNotExist)
	for _, name := range []string{t.SeedName(), t.ShootName()} {
		there, err := cluster.Exists(ctx, name)
		switch {
		case err != nil:
			return stateless, nil // Down may have stopped the container engine; the next step reports other failures
		case there && stateless:
			return false, fmt.Errorf("cluster %s exists without %s: %w", name, t.State, kind.ErrDown)
		case there:
			return false, nil
		}
	}
	return true, nil
}
