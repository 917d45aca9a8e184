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

// explainFullDisk joins an error with a *preflight.Full if a disk is full.
func explainFullDisk(err error, folders ...string) error {
	if err == nil || errors.As(err, new(*preflight.Full)) {
		return err
	}
	if full := preflight.FindFull(folders...); full != nil {
		return errors.Join(full, err)
	}
	return err
}

// runUntilDiskFull calls the function run, and cancels its context with a *preflight.Full as soon
// as a disk is full. Without the cancel, run would fail with another error or time out.
func runUntilDiskFull(ctx context.Context, folders []string, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if full := preflight.AwaitFull(watching, folders...); full != nil {
			cancel(full)
		}
	}()
	err := run(ctx)
	stop()
	<-done
	if seen := new(preflight.Full); err != nil && errors.As(context.Cause(ctx), &seen) {
		return errors.Join(seen, err) // run may have freed space since AwaitFull saw a full disk
	}
	return explainFullDisk(err, folders...) // run may have failed before AwaitFull noticed a full disk
}
