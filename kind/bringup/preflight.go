package bringup

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

const (
	gib = 1 << 30
	// defaultDataRoot is where an engine that the testbed installs keeps images and volumes.
	defaultDataRoot = "/var/lib/docker"
)

// earlierRuns describes what earlier runs of Up left behind. Up needs disk space for the rest.
type earlierRuns struct {
	engine    *engine.Engine // the running engine, or nil
	builds    bool           // parts of a node image, or binaries of this checkout, were built here
	nodeImage bool           // the engine has the node image
	clusters  bool           // both clusters have containers
	cache     string         // the folder for parts of the node image and, usually, Go's build cache
}

// checkMachine checks the machine before Up changes anything. If earlier runs built something but
// the engine does not run, the needed disk space is unknown until the engine runs.
func checkMachine(ctx context.Context, t *kind.Testbed) (diskUnknown bool, err error) {
	found, findErr := findEarlierRuns(ctx, t)
	requirements := preflight.Defaults()
	if findErr == nil {
		requirements.Disk = found.diskNeeded()
	}
	// A failed check takes precedence, since it may be the cause of findErr.
	if err := preflight.Check(ctx, requirements); err != nil {
		return false, err
	}
	return found.engine == nil && found.builds, findErr
}

// DiskNeeded returns the disk space that Up still needs. It changes nothing.
func DiskNeeded(ctx context.Context, t *kind.Testbed) ([]preflight.Space, error) {
	found, err := findEarlierRuns(ctx, t)
	if err != nil {
		return nil, err
	}
	return found.diskNeeded(), nil
}

// diskNeeded returns the disk space for everything that earlier runs did not leave behind.
func (found earlierRuns) diskNeeded() []preflight.Space {
	images := preflight.Space{Directory: defaultDataRoot}
	builds := preflight.Space{Directory: found.cache, Bytes: 1 * gib}
	switch {
	case found.clusters && found.nodeImage:
		images.Bytes = 1 * gib
	case found.nodeImage:
		images.Bytes = 5 * gib
	case found.builds && found.engine == nil:
		return nil
	case found.builds:
		images.Bytes, builds.Bytes = 10*gib, 5*gib
	default:
		images.Bytes, builds.Bytes = 20*gib, 5*gib
	}
	if found.engine == nil {
		return []preflight.Space{images, builds}
	}
	if !found.engine.Local {
		return []preflight.Space{builds}
	}
	images.Directory = found.engine.DataRoot
	return []preflight.Space{images, builds}
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

func findEarlierRuns(ctx context.Context, t *kind.Testbed) (found earlierRuns, err error) {
	if found.cache, err = os.UserCacheDir(); err != nil {
		return found, err
	}
	image := nodeimage.Options{Override: t.Config.NodeImage, Repository: t.Root}
	if found.builds, err = hasBuilds(t, image); err != nil {
		return found, err
	}
	if found.engine = engine.Running(ctx); found.engine == nil {
		return found, nil
	}
	seed, seedErr := cluster.Exists(ctx, t.SeedName())
	shoot, shootErr := cluster.Exists(ctx, t.ShootName())
	found.clusters = seed && shoot
	found.nodeImage, err = nodeimage.Loaded(ctx, image)
	return found, errors.Join(err, seedErr, shootErr)
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
