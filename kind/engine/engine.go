// Package engine provides the Docker Engine that the testbed runs on. A reachable engine is used
// unchanged. If there is none, the package installs the operating system's packages and starts
// an engine, but only as root on Debian and Ubuntu.
//
// Pure functions of the observed host decide what to do. On a host without systemd, the engine runs
// in its own session. Release stops only an engine with the label that Ensure sets.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Engine describes a reachable Docker Engine.
type Engine struct {
	Version  string // for example 20.10.24
	DataRoot string // the directory of images and volumes on the engine's host
	// SysResource reports whether privileged containers have CAP_SYS_RESOURCE. Without it, neither a
	// negative oom_score_adj nor a higher hard limit can be set.
	SysResource bool
	Managed     bool // Ensure started the engine
	Local       bool // the engine's endpoint is on this machine
	containers  int
}

// Ensure returns the engine that the docker command reaches. If there is none, but Ensure runs as
// root on Debian or Ubuntu, it installs and starts one. This takes a few minutes at most. In all
// other cases Ensure returns a *Missing after less than 10 s. Concurrent calls wait for each other,
// even in different processes.
func Ensure(ctx context.Context) (*Engine, error) {
	found, seen, err := inspect(ctx)
	if err != nil || found != nil {
		return found, err
	}
	if missing := decide(seen); missing != nil {
		return nil, missing
	}

	unlock, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have set up an engine meanwhile.
	found, seen, err = inspect(ctx)
	if err != nil || found != nil {
		return found, err
	}
	if missing := decide(seen); missing != nil {
		return nil, missing
	}
	if err := setUp(ctx, seen); err != nil {
		return nil, fmt.Errorf("set up a docker engine: %w", err)
	}
	return probe(ctx)
}

// Running returns the engine that answers, or nil. It changes nothing.
func Running(ctx context.Context) *Engine {
	found, _ := probe(ctx)
	return found
}

// Attach returns the reachable engine, or nil if none runs. It restarts a dead engine that Ensure
// started, but installs nothing. It returns a *Missing if an engine may be running but does not
// answer: the engine hangs, permission is missing, or the user's endpoint is unreachable.
func Attach(ctx context.Context) (*Engine, error) {
	found, seen, err := inspect(ctx)
	if err != nil || found != nil {
		return found, err
	}
	switch start, missing := revive(seen, startedBefore()); {
	case start:
		return Ensure(ctx)
	case missing != nil:
		return nil, missing
	}
	return nil, nil
}

// inspect returns the reachable engine, or the state of the host if there is none.
func inspect(ctx context.Context) (*Engine, host, error) {
	found, err := probe(ctx)
	if err == nil {
		progress.Note(ctx, "engine %s", found.Version)
		return found, host{}, nil
	}
	if ctx.Err() != nil {
		return nil, host{}, context.Cause(ctx)
	}
	seen, hostErr := readHost(ctx, err)
	return nil, seen, hostErr
}

// setUp installs an engine unless the host has one, and starts it.
func setUp(ctx context.Context, h host) error {
	if !h.daemon || !h.client {
		progress.Note(ctx, "installed docker.io")
		if err := InstallPackages(ctx, "docker.io"); err != nil {
			return err
		}
		if !hasProgram("docker") {
			if err := InstallPackages(ctx, "docker-cli"); err != nil { // a separate package since Debian 13
				return err
			}
		}
	}
	if h.systemd {
		return startService(ctx)
	}
	if err := buildShim(ctx); err != nil {
		return err
	}
	return startDaemon(ctx)
}

// lockTimeout is longer than another process may take to install and start the engine.
const lockTimeout = 15 * time.Minute

// acquire keeps other processes from installing, starting or stopping the engine until unlock is
// called or this process dies.
func acquire(ctx context.Context) (unlock func(), err error) {
	unlock, err = file.Lock(ctx, filepath.Join(file.LockDirectory(), "engine.lock"), lockTimeout)
	if err != nil {
		return nil, fmt.Errorf("wait for another process to set up or stop the docker engine: %w", err)
	}
	return unlock, nil
}

// execRoot is where dockerd keeps the runtime state of containers.
const execRoot = "/var/run/docker"

// Release stops the engine if Ensure started it and no container, running or stopped, exists. It
// then removes the runc shim, the logs, the marker file, and the network sandboxes that a killed
// dockerd left. It keeps images and packages.
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

	// Another process may have created containers or stopped the engine meanwhile.
	found, err = probe(ctx)
	if err != nil || !found.Managed || found.containers > 0 {
		return nil
	}
	if err := stopDaemon(ctx); err != nil {
		return fmt.Errorf("stop the docker engine: %w", err)
	}
	return errors.Join(removeSandboxes(execRoot), os.RemoveAll(filepath.Dir(shimPath)), os.RemoveAll(logDir), os.Remove(marker))
}

// removeSandboxes removes the network sandboxes that a killed dockerd left behind, some with a
// mounted network namespace. A new dockerd never removes them. Call it only while no dockerd runs.
func removeSandboxes(root string) error {
	var failed error
	for _, pattern := range []string{"netns/*", "libnetwork/*.sock"} {
		left, err := filepath.Glob(filepath.Join(root, pattern))
		failed = errors.Join(failed, err)
		for _, path := range left {
			_ = unix.Unmount(path, unix.MNT_DETACH) // most sandboxes are no longer mounted
			if err := os.Remove(path); err != nil {
				failed = errors.Join(failed, fmt.Errorf("remove a network sandbox of a killed dockerd: %w", err))
			}
		}
	}
	return failed
}
