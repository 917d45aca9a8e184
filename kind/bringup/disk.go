package bringup

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

// untilDiskFull returns a part that runs the parts one after another, and ends them with a
// *preflight.Full as soon as a disk that the testbed writes to is full. Otherwise a part would fail
// later with another error, or wait for a cluster that cannot become ready.
func untilDiskFull(parts ...part) part {
	return func(ctx context.Context, t *kind.Testbed) error {
		return runUntilDiskFull(ctx, writtenFolders(t.Engine, t.State), func(ctx context.Context) error {
			return inOrder(ctx, t, parts...)
		})
	}
}

// folders are folders on the file systems that the testbed writes to.
type folders struct {
	paths []string
	// remoteEngine is set if the engine writes to the disk of another machine, which cannot be
	// inspected.
	remoteEngine bool
}

// writtenFolders returns the folders that Up writes to.
func writtenFolders(engine *engine.Engine, state kind.State) folders {
	paths := []string{filepath.Dir(string(state))}
	if cache, err := os.UserCacheDir(); err == nil {
		paths = append(paths, cache)
	}
	local := engine == nil || engine.Local
	if engine != nil && local && engine.DataRoot != "" {
		paths = append(paths, engine.DataRoot)
	}
	return folders{paths, !local}
}

// explainFullDisk joins an error with a *preflight.Full if a disk is full now, or if the error
// itself reports a full disk: a container that could not be created has freed its space by now. It
// returns nil for nil.
func explainFullDisk(err error, written folders) error {
	var full *preflight.Full
	if err == nil || errors.As(err, &full) {
		return err
	}
	if full = preflight.FindFull(written.paths...); full == nil && !written.remoteEngine {
		full = preflight.WasFull(err, written.paths...)
	}
	if full != nil {
		return errors.Join(full, err)
	}
	return err
}

func runUntilDiskFull(ctx context.Context, written folders, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if full := preflight.AwaitFull(watching, written.paths...); full != nil {
			cancel(full)
		}
	}()
	err := run(ctx)
	stop()
	<-done
	if seen := new(preflight.Full); err != nil && errors.As(context.Cause(ctx), &seen) {
		return errors.Join(seen, err) // the failed part may have freed its space since
	}
	return explainFullDisk(err, written) // the part failed before the watch noticed
}
