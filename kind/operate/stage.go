package operate

import (
	"fmt"
	"slices"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// possible returns a *RefusedError if the operation is not possible for the Shoot. Rotations
// have the rules of gardener-apiserver (validateShootOperationContext in
// pkg/api/core/validation/shoot.go). Other operations are possible in all phases of a rotation.
func (o Operation) possible(shoot *gardencorev1beta1.Shoot) error {
	if stage := gardenlet.StageOf(shoot); !slices.Contains(o.from, stage) {
		return &RefusedError{o.Name, whyNotIn[stage]}
	}
	if o.Name != rotateStart && o.Name != rotateComplete {
		return nil
	}
	phase := v1beta1helper.GetShootCARotationPhase(shoot.Status.Credentials)
	none := phase == "" || phase == gardencorev1beta1.RotationCompleted
	switch {
	case o.Name == rotateStart && none && readyForRotation(shoot.Status.LastOperation),
		o.Name == rotateComplete && phase == gardencorev1beta1.RotationPrepared:
		return nil
	case o.Name == rotateStart && none:
		return &RefusedError{o.Name, "the shoot was not created successfully: run `testbed shoot reconcile` first"}
	}
	return &RefusedError{o.Name, whyNotAfter(phase)}
}

// RefusedError is the error for an operation that is not possible now. Nothing was changed.
type RefusedError struct{ Operation, Why string }

func (e *RefusedError) Error() string { return fmt.Sprintf("shoot %s: %s", e.Operation, e.Why) }

// UsageError makes internal/program exit with code 2.
func (*RefusedError) UsageError() {}

// whyNotIn has no reason for StagePresent, in which every operation is possible.
var whyNotIn = map[gardenlet.Stage]string{
	gardenlet.StageAbsent:    "the shoot does not exist: create it with `testbed shoot apply`",
	gardenlet.StageMigrating: "its migration is not complete: continue it with `testbed shoot migrate`",
	gardenlet.StageRestoring: "its restoration is not complete: continue it with `testbed shoot migrate`",
	gardenlet.StageDeleting:  "its deletion is not complete: continue it with `testbed shoot delete`",
}

func whyNotAfter(phase gardencorev1beta1.CredentialsRotationPhase) string {
	switch phase {
	case gardencorev1beta1.RotationPreparing:
		return "a rotation was started and is not prepared: continue it with `testbed shoot reconcile`"
	case gardencorev1beta1.RotationPrepared:
		return "a rotation is prepared: run `testbed shoot rotate-ca-complete` first"
	case gardencorev1beta1.RotationCompleting:
		return "a rotation is being completed: continue it with `testbed shoot reconcile`"
	case "", gardencorev1beta1.RotationCompleted:
		return "no rotation is prepared: run `testbed shoot rotate-ca-start` first"
	}
	return fmt.Sprintf("a rotation is in phase %s", phase)
}

// readyForRotation corresponds to isShootReadyForRotationStart in Gardener's validation/shoot.go.
func readyForRotation(last *gardencorev1beta1.LastOperation) bool {
	created := []gardencorev1beta1.LastOperationType{gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationTypeRestore}
	return last != nil && (last.Type == gardencorev1beta1.LastOperationTypeReconcile ||
		slices.Contains(created, last.Type) && last.State == gardencorev1beta1.LastOperationStateSucceeded)
}
