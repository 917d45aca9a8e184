package bringup

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/manifest"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// reconcileShoot reconciles the Shoot for the first time. It removes the garden of the shoot
// commands, which belongs to the previous Shoot.
func reconcileShoot(ctx context.Context, t *kind.Testbed) error {
	if err := os.RemoveAll(t.State.Garden()); err != nil {
		return fmt.Errorf("remove the garden of the shoot commands: %w", err)
	}
	if t.Config.Shoot.Manifest != "" {
		return t.Recorder.Step(ctx, "shoot reconciled", func(ctx context.Context) error { return reconcileManifest(ctx, t) })
	}
	shoot, err := operate.ShootWithCaches(t.CachedUpstreams()...)
	if err != nil {
		return err
	}
	return t.Recorder.Step(ctx, "shoot reconciled", func(ctx context.Context) error {
		for _, host := range t.CachedUpstreams() {
			progress.Note(ctx, "cache for %s", host)
		}
		return t.Gardenlet.Reconcile(ctx, shoot)
	})
}

// reconcileManifest reconciles the Shoot of the configuration's manifest. It stores the manifest's
// Secrets in the garden of the shoot commands, which need them.
func reconcileManifest(ctx context.Context, t *kind.Testbed) error {
	wanted, err := readManifest(t.Config.Shoot.Manifest)
	if err != nil {
		return err
	}
	shoot, replaced, err := manifest.Overlay(wanted.Shoot, gardenlet.Shoot())
	if err != nil {
		return err
	}
	progress.Note(ctx, "%s, %d of its fields not used", t.Relative(t.Config.Shoot.Manifest), len(replaced))
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.Gardenlet.Garden, err = gardener.OpenGarden(t.State.Garden(), registration); err != nil {
		return err
	}
	return operate.ApplyManifest(ctx, t, wanted, shoot)
}

func readManifest(path string) (*manifest.Manifest, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("shoot.manifest: %w", err)
	}
	wanted, err := manifest.Read(path, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return wanted, nil
}
