package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Release stops the engine if Ensure started it and it has no container left, running or not, and removes our files:
// shim, log, marker. In all other cases, and where no engine answers, it does nothing. Images stay in the engine's
// data directory for the next time, the packages stay installed: where systemd runs, the service starts, without the shim,
// at the next boot.
func Release(ctx context.Context) error {
	found, err := probe(ctx)
	if err != nil || !found.Managed {
		return nil
	}
	unlock, err := acquire(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	// Another testbed may have come or gone while we waited.
	found, err = probe(ctx)
	if err != nil || !found.Managed || found.containers > 0 {
		return nil
	}
	if err := stop(ctx); err != nil {
		return fmt.Errorf("stopping the docker engine: %w", err)
	}
	return errors.Join(os.RemoveAll(filepath.Dir(shimPath)), os.RemoveAll(logDir), os.Remove(marker))
}

func stop(ctx context.Context) error {
	if _, err := os.Stat(dropIn); err == nil {
		return stopService(ctx)
	}
	return stopDaemon(ctx)
}
