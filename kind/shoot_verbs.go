package kind

import (
	"context"
	"fmt"
	"slices"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/manifest"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// operationTimeout bounds one operation on the shoot: gardenlet runs a flow three times, and an extension may take five minutes
// in each.
const operationTimeout = 20 * time.Minute

// The methods below are operations on the testbed's shoot for processes that have not called Up. Each takes the testbed's lock,
// connects by AttachGardenlet and runs one of gardenlet's flows, for the shoot that the last operation left. One for which the
// shoot does not stand right is a *WrongStage or a *WrongRotation and changes nothing. Retries and errors are those of the flow, see
// gardenlet.

// ApplyShoot creates or reconciles the shoot that the manifest describes, see manifest.Overlay. Its Secrets are put into the
// garden first, in the place of those of the same name.
func (t *Testbed) ApplyShoot(ctx context.Context, wanted *manifest.Manifest) error {
	shoot, _, err := manifest.Overlay(wanted.Shoot, gardenlet.Shoot())
	if err != nil {
		return err
	}
	return t.operate(ctx, verbApply, func(ctx context.Context, _ *gardencorev1beta1.Shoot) error {
		return t.applyManifest(ctx, wanted, shoot)
	})
}

// ReconcileShoot reconciles the shoot as it is, as gardenlet does every hour by default.
func (t *Testbed) ReconcileShoot(ctx context.Context) error {
	return t.operate(ctx, verbReconcile, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.gardenlet.Reconcile(ctx, shoot)
	})
}

// DisableExtension takes the extension out of the shoot and reconciles it.
func (t *Testbed) DisableExtension(ctx context.Context) error {
	return t.operate(ctx, verbDisable, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.gardenlet.Reconcile(ctx, withoutExtension(shoot))
	})
}

// withoutExtension returns the shoot without the extension; spec.resources stay as they are.
func withoutExtension(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.Spec.Extensions = slices.DeleteFunc(shoot.Spec.Extensions, func(extension gardencorev1beta1.Extension) bool {
		return extension.Type == ExtensionName
	})
	return shoot
}

// HibernateShoot brings the shoot to sleep.
func (t *Testbed) HibernateShoot(ctx context.Context) error {
	return t.operate(ctx, verbHibernate, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.gardenlet.Hibernate(ctx, shoot)
	})
}

// WakeShoot wakes the shoot up.
func (t *Testbed) WakeShoot(ctx context.Context) error {
	return t.operate(ctx, verbWake, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.gardenlet.WakeUp(ctx, shoot)
	})
}

// DeleteShoot deletes the shoot. The clusters stay, and ApplyShoot creates it anew. One that is not there is no error.
func (t *Testbed) DeleteShoot(ctx context.Context) error {
	return t.operate(ctx, verbDelete, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if shoot == nil {
			progress.Skip(ctx, "there is none")
			return nil
		}
		return t.gardenlet.Delete(ctx, shoot)
	})
}

// MigrateShoot lets the shoot leave the seed. RestoreShoot brings it back, in this process or another one.
func (t *Testbed) MigrateShoot(ctx context.Context) error {
	return t.operate(ctx, verbMigrate, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if gardenlet.StageOf(shoot) == gardenlet.StagePresent {
			if err := t.gardenlet.Leave(ctx, shoot); err != nil {
				return err
			}
		}
		return t.gardenlet.Migrate(ctx, shoot)
	})
}

// RestoreShoot brings the shoot that MigrateShoot has let leave to its new seed, for which a fresh namespace stands.
func (t *Testbed) RestoreShoot(ctx context.Context) error {
	return t.operate(ctx, verbRestore, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if err := t.gardenlet.Restore(ctx, shoot); err != nil {
			return err
		}
		return t.gardenlet.Forget(ctx)
	})
}

// StartRotation lets the certificate authorities of the shoot rotate, up to where nodes trust the old and the new one. One that was
// interrupted is continued by ReconcileShoot, as in Gardener.
func (t *Testbed) StartRotation(ctx context.Context) error {
	return t.rotate(ctx, verbRotateStart, gardencorev1beta1.RotationPreparing)
}

// CompleteRotation ends what StartRotation has begun: the new authority alone is trusted.
func (t *Testbed) CompleteRotation(ctx context.Context) error {
	return t.rotate(ctx, verbRotateComplete, gardencorev1beta1.RotationCompleting)
}

func (t *Testbed) rotate(ctx context.Context, verb shootVerb, phase gardencorev1beta1.CredentialsRotationPhase) error {
	return t.operate(ctx, verb, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.gardenlet.RotateCA(ctx, shoot, phase)
	})
}

// operate runs an operation as a step, as the only command that works on the testbed.
func (t *Testbed) operate(ctx context.Context, verb shootVerb, do func(context.Context, *gardencorev1beta1.Shoot) error) error {
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, operationTimeout,
		fmt.Errorf("shoot %s: not done after %s", verb.name, operationTimeout))
	defer cancel()
	if err := t.recorder.Step(ctx, "gardenlet", t.AttachGardenlet); err != nil {
		return err
	}
	shoot, stage, err := t.gardenlet.Find(ctx)
	if err != nil {
		return err
	}
	status := newShootStatus()
	status.setShoot(shoot, stage)
	if err := verb.possible(status); err != nil {
		return err
	}
	return t.recorder.Step(ctx, verb.step, func(ctx context.Context) error { return do(ctx, shoot) })
}

// OtherExtensions are the types in the shoot's spec.extensions of which no extension is installed in the testbed: gardenlet passes
// them over.
func OtherExtensions(shoot *gardencorev1beta1.Shoot) []string {
	var others []string
	for _, extension := range shoot.Spec.Extensions {
		if extension.Type != ExtensionName {
			others = append(others, extension.Type)
		}
	}
	return others
}
