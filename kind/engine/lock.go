package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/lock"
)

// lockTimeout is longer than what another process may need to install and start the engine.
const lockTimeout = 15 * time.Minute

// acquire keeps other processes from installing, starting or stopping the engine until unlock is called or we die.
func acquire(ctx context.Context) (unlock func(), err error) {
	unlock, err = lock.Wait(ctx, filepath.Join(lock.Directory(), "engine.lock"), lockTimeout)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process that sets up or stops the docker engine: %w", err)
	}
	return unlock, nil
}
