package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// faultTimeout limits adding or clearing one fault, machineFaultTimeout one that starts a machine.
	faultTimeout        = time.Minute
	machineFaultTimeout = 6 * time.Minute
	// lockTimeout limits waiting for another command that adds or clears faults.
	lockTimeout = 30 * time.Second
)

// withOutcome is an injection with a result for Fault.Outcome.
type withOutcome interface{ outcome() string }

// Add applies a fault and returns it with its ID and its times. It lasts for its duration, or until
// it is cleared, even if this process ends. The restart of a node ends the faults on it, and Down
// ends all.
//
// Add returns a *spec.UseError for an unknown target, and for a duration of a fault that only a
// command can end (see spec.Fault.EndsOnlyByCommand): use Hold. If it fails to apply a part of the
// fault, it clears the others.
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
	injection, err := availableInjection(ctx, t, begun)
	if err != nil {
		return wanted, err
	}
	if err := injection.Inject(ctx); err != nil {
		err = fmt.Errorf("%s of %s: %w", begun.Kind, begun.Target, err)
		return wanted, errors.Join(err, clearInjection(context.WithoutCancel(ctx), begun, injection))
	}
	if result, ok := injection.(withOutcome); ok {
		begun.Outcome = result.outcome()
	}
	return begun, nil
}

// PlanAdd returns what Add and Hold would do, one line each.
func PlanAdd(ctx context.Context, t *kind.Testbed, wanted spec.Fault) ([]string, error) {
	var err error
	if wanted.Target, err = ResolveTarget(ctx, t, wanted.Target); err != nil {
		return nil, err
	}
	if _, err := availableInjection(ctx, t, wanted); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("break %s: it %s", wanted.Target, wanted.Effect())}, nil
}

// availableInjection returns the injection of a fault, or an error if it cannot be applied now.
func availableInjection(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	injection, err := injectionOf(ctx, t, f)
	if err != nil {
		return nil, err
	}
	if err := injection.Available(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Target, err)
	}
	return injection, nil
}

// clearInjection clears a fault within its timeout.
func clearInjection(ctx context.Context, f spec.Fault, injection injection) error {
	ctx, cancel := progress.Within(ctx, timeoutOf(f), "the fault was not cleared")
	defer cancel()
	return injection.Clear(ctx)
}

func timeoutOf(f spec.Fault) time.Duration {
	if f.EndsOnlyByCommand() {
		return machineFaultTimeout
	}
	return faultTimeout
}
