package develop

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Rollout waits until the installed version of the extension runs on the seed, makes it reconcile
// the Shoots that enable it, and waits until what it runs in the shoot is replaced. Gardenlet's
// flow does not run, so the OperatingSystemConfig does not change. The testbed must be attached.
func Rollout(ctx context.Context, t *kind.Testbed) error {
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	extension, err := t.InstalledExtension(ctx)
	if err != nil {
		return err
	}
	count := 0
	steps := []func(context.Context) error{
		t.Step("extension in the seed", func(ctx context.Context) error { return extension.Wait(ctx, seed.Client()) }),
		t.Step("Shoots reconciled by it", func(ctx context.Context) error {
			defer gardener.RequeueDeletions(ctx, seed.Client(), gardenlet.Namespace(gardenlet.DefaultShoot))()
			count, err = extension.Reconcile(ctx, seed.Client())
			return skipWithout(ctx, count, err)
		}),
	}
	if replaced := t.Extension.Replaced; replaced.Until != nil {
		steps = append(steps, t.Step(replaced.Name, func(ctx context.Context) error {
			if count == 0 {
				return skipWithout(ctx, count, nil)
			}
			return replaced.Until(ctx, t)
		}))
	}
	return progress.InOrder(ctx, steps...)
}

func skipWithout(ctx context.Context, count int, err error) error {
	if count == 0 && err == nil {
		progress.Skip(ctx, "no Shoot has the extension")
	}
	return err
}
