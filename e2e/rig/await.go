//go:build e2e

package rig

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"
)

// Await polls until done returns true or an error, and fails the scenario after the timeout with the text of what was
// awaited and the state that done last described.
func (p *Run) Await(ctx context.Context, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) {
	p.Helper()
	p.Check(Await(ctx, what, timeout, done))
}

func Await(ctx context.Context, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) error {
	return AwaitEvery(ctx, pollInterval, what, timeout, done)
}

func AwaitEvery(
	ctx context.Context, interval time.Duration, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error),
) error {
	last := "not looked at"
	err := wait.For(func(ctx context.Context) (ok bool, err error) {
		ok, state, err := done(ctx)
		if ctx.Err() == nil {
			last = state
		}
		return ok, err
	}, wait.WithContext(ctx), wait.WithImmediate(), wait.WithInterval(interval), wait.WithTimeout(timeout))
	if err != nil {
		return fmt.Errorf("waited up to %s until %s; last seen: %s: %w", timeout, what, last, err)
	}
	return nil
}

const (
	// pollInterval is short: everything polled is on this machine.
	pollInterval = 200 * time.Millisecond
	// nodeInterval is longer: a command on a node takes this machine more than a request does.
	NodeInterval = 500 * time.Millisecond
)
