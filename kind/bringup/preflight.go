package bringup

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

const (
	gib = 1 << 30
	// defaultDataRoot is where an engine that the testbed installs keeps images and volumes.
	defaultDataRoot = "/var/lib/docker"
)

// checkMachine checks the machine before Up changes anything.
func checkMachine(ctx context.Context, t *kind.Testbed) error {
	requirements := preflight.Defaults()
	disk, diskErr := DiskNeeded(ctx, t)
	requirements.Disk = disk
	if err := preflight.Check(ctx, requirements); err != nil {
		return err // it may be the cause of diskErr
	}
	return diskErr
}

// DiskNeeded returns the disk space that Up needs: 25 GiB on a new machine, and little if earlier
// runs have built something here. A disk that gets full later is noticed, see runUntilDiskFull.
func DiskNeeded(ctx context.Context, t *kind.Testbed) ([]preflight.Space, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	builds, err := hasBuilds(t, nodeimage.Options{Override: t.Config.NodeImage, Repository: t.Root})
	return diskNeeded(engine.Running(ctx), cache, builds), err
}

// diskNeeded returns the space for images at the engine, which is nil if none runs, and for builds
// in the cache: parts of the node image and, usually, Go's build cache.
func diskNeeded(running *engine.Engine, cache string, builds bool) []preflight.Space {
	images, built := preflight.Space{Directory: defaultDataRoot, Bytes: 20 * gib}, preflight.Space{Directory: cache, Bytes: 5 * gib}
	if builds {
		images.Bytes, built.Bytes = 1*gib, 1*gib
	}
	switch {
	case running == nil:
	case !running.Local:
		return []preflight.Space{built}
	default:
		images.Directory = running.DataRoot
	}
	return []preflight.Space{images, built}
}

func hasBuilds(t *kind.Testbed, image nodeimage.Options) (bool, error) {
	binaries, err := kind.BinaryDirectory(t.Root)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(binaries); err == nil {
		return true, nil
	}
	return nodeimage.HasParts(image)
}

type folders struct {
	paths        []string
	remoteEngine bool // the engine writes to the disk of another machine, which cannot be inspected
}

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

// explainFullDisk joins an error with a *preflight.Full if a disk is full or the error reports a
// full disk. In the second case the space may be free again, for example after a failed docker run.
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

// runUntilDiskFull calls the function run, and cancels its context with a *preflight.Full as soon
// as a disk is full. Without the cancel, run would fail with another error or time out.
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
		return errors.Join(seen, err) // run may have freed space since AwaitFull saw a full disk
	}
	return explainFullDisk(err, written) // run may have failed before AwaitFull noticed a full disk
}
