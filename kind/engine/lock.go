package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// lockTimeout is longer than what another process may need to install and start the engine.
const lockTimeout = 15 * time.Minute

// lock keeps other processes from installing, starting or stopping the engine until unlock is called or we die.
func lock(ctx context.Context) (unlock func(), err error) {
	const path = runDir + "/lock"
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return nil, fmt.Errorf("locking the docker engine: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the docker engine: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, lockTimeout, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("waiting up to %s for another process that sets up or stops the docker engine (lock %s): %w",
			lockTimeout.Round(time.Second), path, err)
	}
	return func() { _ = file.Close() }, nil
}
