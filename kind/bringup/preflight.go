package bringup

import (
	"context"
	"errors"
	"os"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

const (
	gib = 1 << 30
	// defaultDataRoot is where an engine that we install keeps images and volumes.
	defaultDataRoot = "/var/lib/docker"
)

// existing is what earlier runs have left; Up only needs room for the rest.
type existing struct {
	engine    *engine.Engine // the engine that answers, or nil
	begun     bool           // parts of a node image, or our binaries, were built here before
	nodeImage bool           // the engine has the node image
	clusters  bool           // both clusters have containers
	cache     string         // where the parts of the node image are built, and Go's build cache usually lies
}

// preflight checks the machine before anything on it is changed. Where the testbed was before but its engine does not
// run, nobody can tell how much is there: the disk is checked once it does, by checkDisk.
func checkMachine(ctx context.Context, t *kind.Testbed) error {
	found, lookErr := Look(ctx, t)
	requirements := preflight.Defaults()
	if lookErr == nil {
		requirements.Disk = DiskNeeded(found)
	}
	t.DiskUnknown = found.engine == nil && found.begun
	// What is missing on the machine may well be why looking at it failed.
	if err := preflight.Check(ctx, requirements); err != nil {
		return err
	}
	return lookErr
}

// checkDisk does what preflight has left to do.
func checkDisk(ctx context.Context, t *kind.Testbed) error {
	if !t.DiskUnknown {
		return nil
	}
	found, err := Look(ctx, t)
	if err != nil {
		return err
	}
	return preflight.CheckDisk(DiskNeeded(found))
}

// diskNeeded returns the room for what is still to be made. The first run from nothing needs 20 GiB with all that it
// compiles; one that was cut off has used up a part of that. Nodes unpack images into volumes of their own.
func DiskNeeded(found existing) []preflight.Space {
	images := preflight.Space{Directory: defaultDataRoot}
	builds := preflight.Space{Directory: found.cache, Bytes: 1 * gib}
	switch {
	case found.clusters && found.nodeImage:
		images.Bytes = 1 * gib
	case found.nodeImage:
		images.Bytes = 5 * gib
	case found.begun && found.engine == nil:
		return nil
	case found.begun:
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

// begun tells whether a run on this machine has built something before.
func begun(t *kind.Testbed, image nodeimage.Options) (bool, error) {
	binaries, err := kind.BinaryDirectory(t.Root)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(binaries); err == nil {
		return true, nil
	}
	return nodeimage.HasParts(image)
}

// look finds out what is there. It changes nothing.
func Look(ctx context.Context, t *kind.Testbed) (found existing, err error) {
	if found.cache, err = os.UserCacheDir(); err != nil {
		return found, err
	}
	image := nodeimage.Options{Override: t.Override, Repository: t.Root}
	if found.begun, err = begun(t, image); err != nil {
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
