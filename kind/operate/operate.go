package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// ApplyManifest stores the Secrets of a manifest in the garden, where they replace Secrets with the
// same name, and reconciles the Shoot. The caller must hold the lock of the testbed.
func ApplyManifest(ctx context.Context, t *kind.Testbed, wanted *Manifest, shoot *gardencorev1beta1.Shoot) error {
	for _, secret := range wanted.Secrets {
		if err := t.Gardenlet.StoreSecret(ctx, secret); err != nil {
			return err
		}
		progress.Note(ctx, "secret %s", secret.Name)
	}
	if err := t.Gardenlet.CheckReferences(ctx, shoot); err != nil {
		return err
	}
	return t.Gardenlet.Reconcile(ctx, shoot)
}

// operationTimeout bounds one operation. gardenlet runs a failing flow up to three times, and an
// extension may take five minutes in each run.
const operationTimeout = 20 * time.Minute

// Apply creates or reconciles the Shoot in the manifest, see Manifest.Overlay and ApplyManifest.
func Apply(ctx context.Context, t *kind.Testbed, wanted *Manifest) error {
	return operate(ctx, t, verbApply, func(_ *gardenlet.Gardenlet, ctx context.Context, _ *gardencorev1beta1.Shoot) error {
		return ApplyManifest(ctx, t, wanted, wanted.Overlay(gardenlet.Shoot()))
	})
}

// Reconcile reconciles the unchanged Shoot, as gardenlet does every hour by default.
func Reconcile(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbReconcile, (*gardenlet.Gardenlet).Reconcile)
}

// Disable removes the extension from the Shoot and reconciles the Shoot.
func Disable(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbDisable, func(g *gardenlet.Gardenlet, ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return g.Reconcile(ctx, without(shoot, t.Extension.Name))
	})
}

// without returns a copy of the Shoot without the extension. It keeps spec.resources.
func without(shoot *gardencorev1beta1.Shoot, name string) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.Spec.Extensions = slices.DeleteFunc(shoot.Spec.Extensions, func(extension gardencorev1beta1.Extension) bool {
		return extension.Type == name
	})
	return shoot
}

// Hibernate hibernates the Shoot.
func Hibernate(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbHibernate, (*gardenlet.Gardenlet).Hibernate)
}

// WakeUp wakes up the Shoot.
func WakeUp(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbWake, (*gardenlet.Gardenlet).WakeUp)
}

// Delete deletes the Shoot. The clusters stay, and Apply can recreate the Shoot. An absent Shoot is
// not an error.
func Delete(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbDelete, func(g *gardenlet.Gardenlet, ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if shoot == nil {
			progress.Skip(ctx, "the shoot does not exist")
			return nil
		}
		return g.Delete(ctx, shoot)
	})
}

// Migrate moves the Shoot away from the seed. Restore moves it back, in this or another process.
func Migrate(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbMigrate, func(g *gardenlet.Gardenlet, ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if gardenlet.StageOf(shoot) == gardenlet.StagePresent {
			if err := g.StoreForMigration(ctx, shoot); err != nil {
				return err
			}
		}
		return g.Migrate(ctx, shoot)
	})
}

// Restore restores a migrated Shoot. A new namespace on the same seed stands in for another seed.
func Restore(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbRestore, func(g *gardenlet.Gardenlet, ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if err := g.Restore(ctx, shoot); err != nil {
			return err
		}
		return g.DeleteStored(ctx)
	})
}

// StartRotation starts the CA rotation. Afterwards nodes trust the old and the new CA. Reconcile
// continues an interrupted rotation, as in Gardener.
func StartRotation(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbRotateStart, func(g *gardenlet.Gardenlet, ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return g.RotateCA(ctx, shoot, gardencorev1beta1.RotationPreparing)
	})
}

// CompleteRotation completes the CA rotation. Afterwards nodes trust only the new CA.
func CompleteRotation(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbRotateComplete, func(g *gardenlet.Gardenlet, ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return g.RotateCA(ctx, shoot, gardencorev1beta1.RotationCompleting)
	})
}

// operate calls do(gardenlet, ctx, shoot) as a step, with the Shoot that the last operation left,
// and holds the lock of the testbed. It attaches to the testbed, so it does not need bringup.Up in
// this process. It changes nothing if the operation is not possible, see shootVerb.possible.
func operate(ctx context.Context, t *kind.Testbed, verb shootVerb,
	do func(*gardenlet.Gardenlet, context.Context, *gardencorev1beta1.Shoot) error,
) error {
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := progress.Within(ctx, operationTimeout, fmt.Sprintf("shoot %s: not done", verb.name))
	defer cancel()
	if err := t.Recorder.Step(ctx, "gardenlet", t.AttachGardenlet); err != nil {
		return err
	}
	shoot, stage, err := t.Gardenlet.Find(ctx)
	if err != nil {
		return err
	}
	if err := verb.possible(shoot, stage); err != nil {
		return err
	}
	return t.Recorder.Step(ctx, verb.step, func(ctx context.Context) error { return do(t.Gardenlet, ctx, shoot) })
}

// OtherExtensions returns the types in spec.extensions that are not installed in the testbed.
// gardenlet skips them.
func OtherExtensions(t *kind.Testbed, shoot *gardencorev1beta1.Shoot) []string {
	var others []string
	for _, extension := range shoot.Spec.Extensions {
		if extension.Type != t.Extension.Name {
			others = append(others, extension.Type)
		}
	}
	return others
}
