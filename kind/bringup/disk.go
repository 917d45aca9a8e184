package bringup

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// withRoom makes of several parts one that ends with a *preflight.Full as soon as a disk is full on which the testbed writes. By
// itself a part would fail later, or wait for a cluster that cannot become ready, and say that instead.
func withRoom(t *kind.Testbed, parts ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return watched(ctx, disksOf(t.Engine, t.State), parts...)
	}
}

// disks are directories on whose file systems the testbed writes. elsewhere says that most of it is written on another machine, whose
// disk nobody here can look at.
type disks struct {
	directories []string
	elsewhere   bool
}

// disksOf are the directories to which the testbed writes while it comes up.
func disksOf(engine *engine.Engine, state kind.State) disks {
	directories := []string{filepath.Dir(string(state))}
	if cache, err := os.UserCacheDir(); err == nil {
		directories = append(directories, cache)
	}
	local := engine == nil || engine.Local
	if engine != nil && local && engine.DataRoot != "" {
		directories = append(directories, engine.DataRoot)
	}
	return disks{directories, !local}
}

// explained adds to an error that a disk is full, if one is: it may well be the reason. It also adds that one was full if the error
// says so: a container that could not be made gives its room back faster than anybody looks. Nil stays nil.
func explained(err error, disks disks) error {
	var full *preflight.Full
	if err == nil || errors.As(err, &full) {
		return err
	}
	if full = preflight.FindFull(disks.directories...); full == nil && !disks.elsewhere {
		full = preflight.WasFull(err, disks.directories...)
	}
	if full != nil {
		return errors.Join(full, err)
	}
	return err
}

// watched runs the parts one after another, until one fails or a disk is full.
func watched(ctx context.Context, disks disks, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if full := preflight.AwaitFull(watching, disks.directories...); full != nil {
			cancel(full)
		}
	}()
	err := progress.InOrder(ctx, parts...)
	stop()
	<-done
	if seen := new(preflight.Full); err != nil && errors.As(context.Cause(ctx), &seen) {
		return errors.Join(seen, err) // what has failed may have given its room back since
	}
	return explained(err, disks) // the part was faster than the watch
}
