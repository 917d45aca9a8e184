package fault

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/lock"
)

// lockFaults lets only this process change faults. Down removes the lock file with the state of the
// testbed.
func lockFaults(ctx context.Context, t *kind.Testbed) (unlock func(), err error) {
	if t.Seed == nil || t.Shoot == nil {
		return nil, kind.ErrDown
	}
	unlock, err = lock.Wait(ctx, filepath.Join(string(t.State), "faults.lock"), lockTimeout)
	if err != nil {
		return nil, lockFailure(ctx, t.Prefix, err)
	}
	return unlock, nil
}

// lockFailure names another command only if that is the reason, and not the end of ctx.
func lockFailure(ctx context.Context, prefix string, err error) error {
	if ctx.Err() == nil && errors.Is(err, lock.ErrBusy) {
		return fmt.Errorf("another command changes the faults of testbed %s: %w", prefix, err)
	}
	return fmt.Errorf("lock the faults of testbed %s: %w", prefix, err)
}
