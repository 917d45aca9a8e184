package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// execRoot is where dockerd keeps the runtime state of containers.
const execRoot = "/var/run/docker"

// Release stops the engine if Ensure started it and it has no containers, running or not. It then
// removes the testbed's files (shim, logs, marker) and what a killed dockerd left below
// /var/run/docker. Otherwise, and if no engine answers, it does nothing. Images stay in the
// engine's data directory and packages stay installed: with systemd, the service starts without the
// shim at the next boot.
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

	// Another testbed may have started or stopped meanwhile.
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

// removeSandboxes removes the network sandboxes that a killed dockerd left behind, some with a
// network namespace mounted. A new dockerd creates others and never removes these. No dockerd may
// be running.
func removeSandboxes(root string) error {
	var failed error
	for _, pattern := range []string{"netns/*", "libnetwork/*.sock"} {
		left, err := filepath.Glob(filepath.Join(root, pattern))
		failed = errors.Join(failed, err)
		for _, path := range left {
			_ = unix.Unmount(path, unix.MNT_DETACH) // most are not mounted any more
			if err := os.Remove(path); err != nil {
				failed = errors.Join(failed, fmt.Errorf("removing a network sandbox of a killed dockerd: %w", err))
			}
		}
	}
	return failed
}
