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

// Operation describes an operation on the Shoot, and the stages in which it is possible.
type Operation struct {
	Name, Short string // the name and the short description of its command
	step        string
	from        []gardenlet.Stage
	do          func(context.Context, *kind.Testbed, *gardencorev1beta1.Shoot) error
}

const (
	rotateStart    = "rotate-ca-start"
	rotateComplete = "rotate-ca-complete"
)

var present = []gardenlet.Stage{gardenlet.StagePresent}

// Operations returns all operations but Apply. As in Gardener, only the same operation can continue
// an interrupted deletion. reconcile continues a rotation, and apply a migration that lost Secrets.
func Operations() []Operation {
	return []Operation{
		{"reconcile", "Reconcile the Shoot as it is", "shoot reconciled", present, onGardenlet((*gardenlet.Gardenlet).Reconcile)},
		{"disable", "Disable the extension in the Shoot", "extension disabled", present, disable},
		{"hibernate", "Hibernate the Shoot: its machines stop", "shoot hibernated", present, onGardenlet((*gardenlet.Gardenlet).Hibernate)},
		{"wake", "Wake the Shoot up: it gets new machines", "shoot woken up", present, onGardenlet((*gardenlet.Gardenlet).WakeUp)},
		{"migrate", "Migrate the Shoot off its seed, and restore it in a new namespace", "shoot migrated and restored",
			[]gardenlet.Stage{gardenlet.StagePresent, gardenlet.StageMigrating, gardenlet.StageRestoring}, migrate},
		{rotateStart, "Start the rotation of the CAs: nodes trust the old and the new CA", "new CA prepared", present,
			rotate(gardencorev1beta1.RotationPreparing)},
		{rotateComplete, "Complete the rotation of the CAs: nodes trust only the new CA", "CA rotated", present,
			rotate(gardencorev1beta1.RotationCompleting)},
		{"delete", "Delete the Shoot; the clusters stay", "shoot deleted",
			[]gardenlet.Stage{gardenlet.StageAbsent, gardenlet.StagePresent, gardenlet.StageDeleting}, remove},
	}
}

// Apply returns the operation that creates or reconciles the Shoot in the manifest (see
// Manifest.Overlay and ApplyManifest).
func Apply(wanted *Manifest) Operation {
	return Operation{
		Name: "apply", step: "shoot reconciled",
		from: []gardenlet.Stage{gardenlet.StageAbsent, gardenlet.StagePresent, gardenlet.StageMigrating, gardenlet.StageRestoring},
		do: func(ctx context.Context, t *kind.Testbed, _ *gardencorev1beta1.Shoot) error {
			return ApplyManifest(ctx, t, wanted, wanted.Overlay(gardenlet.Shoot()))
		},
	}
}

// onGardenlet converts a method of Gardenlet for Operation.do.
func onGardenlet(
	do func(*gardenlet.Gardenlet, context.Context, *gardencorev1beta1.Shoot) error,
) func(context.Context, *kind.Testbed, *gardencorev1beta1.Shoot) error {
	return func(ctx context.Context, t *kind.Testbed, shoot *gardencorev1beta1.Shoot) error {
		return do(t.Gardenlet, ctx, shoot)
	}
}

func disable(ctx context.Context, t *kind.Testbed, shoot *gardencorev1beta1.Shoot) error {
	return t.Gardenlet.Reconcile(ctx, without(shoot, t.Extension.Name))
}

// without returns a copy of the Shoot without the extension. It keeps spec.resources.
func without(shoot *gardencorev1beta1.Shoot, name string) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.Spec.Extensions = slices.DeleteFunc(shoot.Spec.Extensions, func(extension gardencorev1beta1.Extension) bool {
		return extension.Type == name
	})
	return shoot
}

// remove deletes the Shoot. The clusters remain, and Apply can recreate the Shoot.
func remove(ctx context.Context, t *kind.Testbed, shoot *gardencorev1beta1.Shoot) error {
	if shoot == nil {
		progress.Skip(ctx, "the shoot does not exist")
		return nil
	}
	return t.Gardenlet.Delete(ctx, shoot)
}

// migrate moves the Shoot away from the seed and back, because the testbed has one seed.
func migrate(ctx context.Context, t *kind.Testbed, shoot *gardencorev1beta1.Shoot) error {
	if gardenlet.StageOf(shoot) != gardenlet.StageRestoring {
		if err := t.Gardenlet.Migrate(ctx, shoot); err != nil {
			return err
		}
		progress.Note(ctx, "it has left the seed")
	}
	return t.Gardenlet.Restore(ctx, shoot)
}

func rotate(phase gardencorev1beta1.CredentialsRotationPhase) func(context.Context, *kind.Testbed, *gardencorev1beta1.Shoot) error {
	return func(ctx context.Context, t *kind.Testbed, shoot *gardencorev1beta1.Shoot) error {
		return t.Gardenlet.RotateCA(ctx, shoot, phase)
	}
}

// operationTimeout bounds one operation. gardenlet runs a failing flow up to three times, and an
// extension may take five minutes in each run.
const operationTimeout = 20 * time.Minute

// Run runs the operation as a step, with the Shoot that the last operation left, and holds the lock
// of the testbed. It attaches to the testbed, so it does not need bringup.Up in this process. If
// the operation is not possible, it changes nothing and returns a *RefusedError.
func (o Operation) Run(ctx context.Context, t *kind.Testbed) error {
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := progress.Within(ctx, operationTimeout, fmt.Sprintf("shoot %s: not done", o.Name))
	defer cancel()
	if err := t.Recorder.Step(ctx, "gardenlet", t.AttachGardenlet); err != nil {
		return err
	}
	shoot, err := t.Gardenlet.Find(ctx)
	if err != nil {
		return err
	}
	if err := o.possible(shoot); err != nil {
		return err
	}
	return t.Recorder.Step(ctx, o.step, func(ctx context.Context) error { return o.do(ctx, t, shoot) })
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
