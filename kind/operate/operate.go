package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/manifest"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// applyManifest puts the Secrets of a manifest into the garden, in the place of those of the same name, and reconciles the shoot.
func ApplyManifest(ctx context.Context, t *kind.Testbed, wanted *manifest.Manifest, shoot *gardencorev1beta1.Shoot) error {
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

// operationTimeout bounds one operation on the shoot: gardenlet runs a flow three times, and an extension may take five minutes
// in each.
const operationTimeout = 20 * time.Minute

// The methods below are operations on the testbed's shoot for processes that have not called Up. Each takes the testbed's lock,
// connects by AttachGardenlet and runs one of gardenlet's flows, for the shoot that the last operation left. One for which the
// shoot does not stand right is a *WrongStage or a *WrongRotation and changes nothing. Retries and errors are those of the flow, see
// gardenlet.

// ApplyShoot creates or reconciles the shoot that the manifest describes, see manifest.Overlay. Its Secrets are put into the
// garden first, in the place of those of the same name.
func Apply(ctx context.Context, t *kind.Testbed, wanted *manifest.Manifest) error {
	shoot, _, err := manifest.Overlay(wanted.Shoot, gardenlet.Shoot())
	if err != nil {
		return err
	}
	return operate(ctx, t, verbApply, func(ctx context.Context, _ *gardencorev1beta1.Shoot) error {
		return ApplyManifest(ctx, t, wanted, shoot)
	})
}

// ReconcileShoot reconciles the shoot as it is, as gardenlet does every hour by default.
func Reconcile(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbReconcile, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.Gardenlet.Reconcile(ctx, shoot)
	})
}

// DisableExtension takes the extension out of the shoot and reconciles it.
func Disable(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbDisable, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.Gardenlet.Reconcile(ctx, withoutExtension(shoot))
	})
}

// withoutExtension returns the shoot without the extension; spec.resources stay as they are.
func withoutExtension(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.Spec.Extensions = slices.DeleteFunc(shoot.Spec.Extensions, func(extension gardencorev1beta1.Extension) bool {
		return extension.Type == kind.ExtensionName
	})
	return shoot
}

// HibernateShoot brings the shoot to sleep.
func Hibernate(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbHibernate, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.Gardenlet.Hibernate(ctx, shoot)
	})
}

// WakeShoot wakes the shoot up.
func WakeUp(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbWake, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.Gardenlet.WakeUp(ctx, shoot)
	})
}

// DeleteShoot deletes the shoot. The clusters stay, and ApplyShoot creates it anew. One that is not there is no error.
func Delete(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbDelete, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if shoot == nil {
			progress.Skip(ctx, "there is none")
			return nil
		}
		return t.Gardenlet.Delete(ctx, shoot)
	})
}

// MigrateShoot lets the shoot leave the seed. RestoreShoot brings it back, in this process or another one.
func Migrate(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbMigrate, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if gardenlet.StageOf(shoot) == gardenlet.StagePresent {
			if err := t.Gardenlet.Leave(ctx, shoot); err != nil {
				return err
			}
		}
		return t.Gardenlet.Migrate(ctx, shoot)
	})
}

// RestoreShoot brings the shoot that MigrateShoot has let leave to its new seed, for which a fresh namespace stands.
func Restore(ctx context.Context, t *kind.Testbed) error {
	return operate(ctx, t, verbRestore, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		if err := t.Gardenlet.Restore(ctx, shoot); err != nil {
			return err
		}
		return t.Gardenlet.Forget(ctx)
	})
}

// StartRotation lets the certificate authorities of the shoot rotate, up to where nodes trust the old and the new one. One that was
// interrupted is continued by ReconcileShoot, as in Gardener.
func StartRotation(ctx context.Context, t *kind.Testbed) error {
	return rotate(ctx, t, verbRotateStart, gardencorev1beta1.RotationPreparing)
}

// CompleteRotation ends what StartRotation has begun: the new authority alone is trusted.
func CompleteRotation(ctx context.Context, t *kind.Testbed) error {
	return rotate(ctx, t, verbRotateComplete, gardencorev1beta1.RotationCompleting)
}

func rotate(ctx context.Context, t *kind.Testbed, verb shootVerb, phase gardencorev1beta1.CredentialsRotationPhase) error {
	return operate(ctx, t, verb, func(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
		return t.Gardenlet.RotateCA(ctx, shoot, phase)
	})
}

// operate runs an operation as a step, as the only command that works on the testbed.
func operate(ctx context.Context, t *kind.Testbed, verb shootVerb, do func(context.Context, *gardencorev1beta1.Shoot) error) error {
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
	if err := verb.possible(status.NewShoot(shoot, stage)); err != nil {
		return err
	}
	return t.Recorder.Step(ctx, verb.step, func(ctx context.Context) error { return do(ctx, shoot) })
}

// OtherExtensions are the types in the shoot's spec.extensions of which no extension is installed in the testbed: gardenlet passes
// them over.
func OtherExtensions(shoot *gardencorev1beta1.Shoot) []string {
	var others []string
	for _, extension := range shoot.Spec.Extensions {
		if extension.Type != kind.ExtensionName {
			others = append(others, extension.Type)
		}
	}
	return others
}
