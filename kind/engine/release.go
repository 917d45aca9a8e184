package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// execRoot is where dockerd keeps what lives no longer than its containers.
const execRoot = "/var/run/docker"

// Release stops the engine if Ensure started it and it has no container left, running or not, and removes our files: shim, log,
// marker, and what one that was killed left below /var/run/docker. In all other cases, and where no engine answers, it does nothing.
// Images stay in the engine's data directory for the next time, the packages stay installed: where systemd runs, the service starts,
// without the shim, at the next boot.
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
	return errors.Join(removeSandboxes(execRoot), os.RemoveAll(filepath.Dir(shimPath)), os.RemoveAll(logDir), os.Remove(marker))
}

func stop(ctx context.Context) error {
	if _, err := os.Stat(dropIn); err == nil {
		return stopService(ctx)
	}
	return stopDaemon(ctx)
}

// removeSandboxes removes what a dockerd that was killed has left of its containers' networks. The next one makes new ones and forgets
// these, with or without the network namespace that each may still hold. No dockerd may run.
func removeSandboxes(root string) error {
	var failed error
	for _, pattern := range []string{"netns/*", "libnetwork/*.sock"} {
		left, err := filepath.Glob(filepath.Join(root, pattern))
		failed = errors.Join(failed, err)
		for _, path := range left {
			_ = unix.Unmount(path, unix.MNT_DETACH) // most are mounted no more
			if err := os.Remove(path); err != nil {
				failed = errors.Join(failed, fmt.Errorf("removing what a killed dockerd left: %w", err))
			}
		}
	}
	return failed
}
