package bringup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

const (
	// defaultDataRoot is where an engine that the testbed installs keeps images and volumes.
	defaultDataRoot = "/var/lib/docker"
	// leastFree is the free space below which a file system counts as full. A full disk causes
	// misleading errors: for example, a cluster does not become ready because etcd cannot write.
	leastFree    = 32 << 20
	fullInterval = time.Second // between two checks of awaitFull
)

// spaceNeeded returns the disk space that Up needs: up to 25 GiB on a new machine, or 2 GiB if an
// earlier run built something. If a disk becomes full later, runUntilDiskFull stops Up.
func spaceNeeded(ctx context.Context) ([]space, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(filepath.Join(cache, "registry-cache-testbed"))
	return diskNeeded(engine.Running(ctx), cache, err == nil), nil
}

// diskNeeded returns the space for the images of the running engine, which may be nil, and for
// builds in the folder cache: parts of the node image and, usually, Go's build cache.
func diskNeeded(running *engine.Engine, cache string, builds bool) []space {
	images, built := space{defaultDataRoot, 20 * gib}, space{cache, 5 * gib}
	if builds {
		images.bytes, built.bytes = 1*gib, 1*gib
	}
	switch {
	case running == nil:
	case !running.Local:
		return []space{built}
	default:
		images.directory = running.DataRoot
	}
	return []space{images, built}
}

// Full is the error of a full file system. It is an environment error (exit code 3).
type Full struct{ space }

// EnvironmentError marks the error as an environment error, see internal/program.
func (f *Full) EnvironmentError() {}

// Error returns one line: which file system is full, and what to do.
func (f *Full) Error() string {
	return fmt.Sprintf("the disk is full: %.1f MiB are left at %s; free some space and run it again", float64(f.bytes)/(1<<20), f.directory)
}

// awaitFull returns a *Full as soon as the file system of one of the folders is full, or nil when
// ctx ends. It ignores a file system whose free space cannot be read.
func awaitFull(ctx context.Context, folders ...string) *Full {
	var found *Full
	_ = wait.PollUntilContextCancel(ctx, fullInterval, true, func(context.Context) (bool, error) {
		found = findFull(folders...)
		return found != nil, nil
	})
	return found
}

// findFull returns the first full file system of the folders, or nil.
func findFull(folders ...string) *Full {
	for _, folder := range folders {
		if found, _, err := freeSpace(folder); err == nil && found.bytes < leastFree {
			return &Full{found}
		}
	}
	return nil
}

// writtenFolders returns the folders of this machine that Up and the engine write to.
func writtenFolders(engine *engine.Engine, state kind.State) []string {
	paths := []string{filepath.Dir(string(state))}
	if cache, err := os.UserCacheDir(); err == nil {
		paths = append(paths, cache)
	}
	if engine != nil && engine.Local && engine.DataRoot != "" {
		paths = append(paths, engine.DataRoot)
	}
	return paths
}

// explainFullDisk joins an error with a *Full if a disk is full.
func explainFullDisk(err error, folders ...string) error {
	if err == nil || errors.As(err, new(*Full)) {
		return err
	}
	if full := findFull(folders...); full != nil {
		return errors.Join(full, err)
	}
	return err
}

// runUntilDiskFull calls the function run, and cancels its context with a *Full as soon as a disk
// is full. Otherwise, run would fail with another error or time out.
func runUntilDiskFull(ctx context.Context, folders []string, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if full := awaitFull(watching, folders...); full != nil {
			cancel(full)
		}
	}()
	err := run(ctx)
	stop()
	<-done
	if seen := new(Full); err != nil && errors.As(context.Cause(ctx), &seen) {
		return errors.Join(seen, err) // run may have freed space since awaitFull saw a full disk
	}
	return explainFullDisk(err, folders...) // run may have failed before awaitFull noticed a full disk
}
