package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// faultTimeout bounds what is done to one fault, machineFaultTimeout if that is to start a machine.
	faultTimeout        = time.Minute
	machineFaultTimeout = 6 * time.Minute
	// faultLockTimeout is how long one command waits for another that adds or clears faults.
	faultLockTimeout = 30 * time.Second
)

// injection brings a fault about.
type injection interface {
	// Available says why the fault cannot be brought about now; nil if it can.
	Available(ctx context.Context) error
	// Inject brings it about. It mends itself when its time is over, without this process, unless it is tended.
	Inject(ctx context.Context) error
	// Clear mends it, also when Inject failed, was interrupted or never ran, and when its time is over.
	Clear(ctx context.Context) error
}

// outcomes are told by an injection that changes something for good.
type outcomes interface{ outcome() string }

// AddFault breaks what the fault names, and returns the fault with its ID and the times of its beginning and end. It lasts for
// its time, or until it is cleared, also when this process ends; the restart of a node ends those on it, Down ends all. The error
// for a target that is not there is a *fault.UseError, and so it is for a time of a fault that only a command can end
// (fault.Fault.Tended): HoldFault is for that. When it cannot be brought about as a whole, nothing stays broken.
//
// Where a fault is, what there is to know about it is stored too: in the upstream's container, on the nodes. So the testbed of
// another process knows it, and none that the end of a container has mended.
func Add(ctx context.Context, t *kind.Testbed, wanted spec.Fault) (spec.Fault, error) {
	if err := wanted.CheckTime(); err != nil {
		return wanted, err
	}
	bound := timeoutOf(wanted)
	ctx, cancel := progress.Within(ctx, bound, "no fault")
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
	if wanted.Target, err = Resolve(ctx, t, wanted.Target); err != nil {
		return wanted, err
	}
	begun := wanted.Begin(spec.NextID(active), time.Now())
	injection, err := injectionOf(ctx, t, begun)
	if err != nil {
		return wanted, err
	}
	if err := injection.Available(ctx); err != nil {
		return wanted, fmt.Errorf("%s: %w", begun.Target, err)
	}
	if err := injection.Inject(ctx); err != nil {
		return wanted, errors.Join(fmt.Errorf("%s of %s: %w", begun.Kind, begun.Target, err), clearAfterwards(ctx, begun, injection))
	}
	if told, ok := injection.(outcomes); ok {
		begun.Outcome = told.outcome()
	}
	return begun, nil
}

// clearAfterwards mends a fault also when ctx has ended.
func clearAfterwards(ctx context.Context, f spec.Fault, injection injection) error {
	bound := timeoutOf(f)
	ctx, cancel := progress.Within(context.WithoutCancel(ctx), bound, "not cleared")
	defer cancel()
	return injection.Clear(ctx)
}

func timeoutOf(f spec.Fault) time.Duration {
	if f.Tended() {
		return machineFaultTimeout
	}
	return faultTimeout
}

// Faults returns what is broken now, in the order of its beginning. What could be read is returned also with an error. Nothing is
// changed, and nobody is waited for: one that another command is about to add or to clear may or may not be among them.
func List(ctx context.Context, t *kind.Testbed) ([]spec.Fault, error) {
	if t.Seed == nil || t.Shoot == nil {
		return nil, kind.ErrDown
	}
	ctx, cancel := progress.Within(ctx, faultTimeout, "no list of faults")
	defer cancel()
	return faults(ctx, t, LookArguments())
}

// ClearFaults mends the faults with these IDs, all without any, and returns them. An ID that is not active is a
// *fault.UseError, and then none is cleared. One that cannot be cleared does not keep the others.
func Clear(ctx context.Context, t *kind.Testbed, ids ...string) ([]spec.Fault, error) {
	unlock, err := lockFaults(ctx, t)
	if err != nil {
		return nil, err
	}
	defer unlock()
	listing, cancel := progress.Within(ctx, faultTimeout, "no list of faults")
	defer cancel()
	active, failed := activeFaults(listing, t)
	chosen, err := spec.Select(active, ids)
	if err != nil {
		return nil, errors.Join(err, failed)
	}
	var cleared []spec.Fault
	for _, f := range chosen {
		if err := clear(ctx, t, f); err != nil {
			failed = errors.Join(failed, fmt.Errorf("clear fault %s: %w", f.ID, err))
			continue
		}
		cleared = append(cleared, f)
	}
	return cleared, failed
}

// clear mends an active fault, within its time.
func clear(ctx context.Context, t *kind.Testbed, f spec.Fault) error {
	bound := timeoutOf(f)
	ctx, cancel := progress.Within(ctx, bound, "not cleared")
	defer cancel()
	injection, err := clearing(t, f)
	if err != nil {
		return err
	}
	return injection.Clear(ctx)
}

// activeFaults returns those that hold, and ends what is left of others. The caller holds the lock.
func activeFaults(ctx context.Context, t *kind.Testbed) ([]spec.Fault, error) {
	return faults(ctx, t, ListArguments())
}

// faults asks everything that may have one, at once: nodes with these arguments of their script.
func faults(ctx context.Context, t *kind.Testbed, asked []string) ([]spec.Fault, error) {
	var (
		asking sync.WaitGroup
		mu     sync.Mutex
		all    []spec.Fault
		failed error
	)
	ask := func(read func(context.Context) ([]spec.Fault, error)) {
		asking.Go(func() {
			found, err := read(ctx)
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, found...), errors.Join(failed, err)
		})
	}
	for _, registry := range t.Upstreams.All() {
		ask(registry.Faults)
	}
	for _, node := range t.Nodes() {
		ask(func(ctx context.Context) ([]spec.Fault, error) { return faultsOf(ctx, node, asked) })
	}
	asking.Wait()
	slices.SortFunc(all, func(a, b spec.Fault) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) })
	// One that several nodes have is one.
	return slices.CompactFunc(all, func(a, b spec.Fault) bool { return a.ID == b.ID }), failed
}

// faultsOf returns the faults that hold on a node, by what its script answers.
func faultsOf(ctx context.Context, node *cluster.Node, asked []string) ([]spec.Fault, error) {
	output, err := faultScript(ctx, node, asked...)
	if err != nil {
		return nil, fmt.Errorf("list faults: %w", err)
	}
	found, err := ParseList(output)
	if err != nil {
		return nil, fmt.Errorf("on %s: %w", node.Name(), err)
	}
	return found, nil
}
