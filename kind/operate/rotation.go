package operate

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// RotationError is the error for a step of the CA rotation that is not possible in the current
// phase. gardener-apiserver would refuse the annotation too. Nothing was changed.
type RotationError struct {
	// Verb is the name of the requested operation.
	Verb string
	// Phase is the phase of the rotation. Empty if there was no rotation.
	Phase gardencorev1beta1.CredentialsRotationPhase
}

func (e *RotationError) Error() string {
	var why string
	switch e.Phase {
	case gardencorev1beta1.RotationPreparing:
		why = "a rotation was started and is not prepared: continue it with `testbed shoot reconcile`"
	case gardencorev1beta1.RotationPrepared:
		why = "a rotation is prepared: run `testbed shoot rotate-ca-complete` first"
	case gardencorev1beta1.RotationCompleting:
		why = "a rotation is being completed: continue it with `testbed shoot reconcile`"
	case "", gardencorev1beta1.RotationCompleted:
		why = "no rotation is prepared: run `testbed shoot rotate-ca-start` first"
		if e.Verb == verbRotateStart.name {
			why = "the shoot was not created successfully: run `testbed shoot reconcile` first"
		}
	default:
		why = fmt.Sprintf("a rotation is in phase %s", e.Phase)
	}
	return fmt.Sprintf("shoot %s: %s", e.Verb, why)
}

// UsageError marks the error for internal/program: exit code 2.
func (*RotationError) UsageError() {}

// checkRotation returns a *RotationError if the verb is not possible in the phase or after the last
// operation. The rules are those of gardener-apiserver for the annotations rotate-ca-start and
// rotate-ca-complete (validateShootOperationContext in pkg/api/core/validation/shoot.go). Other
// verbs are possible in all phases.
func (v shootVerb) checkRotation(phase gardencorev1beta1.CredentialsRotationPhase, last *gardencorev1beta1.LastOperation) error {
	possible := true
	switch v.name {
	case verbRotateStart.name:
		possible = (phase == "" || phase == gardencorev1beta1.RotationCompleted) && readyForRotation(last)
	case verbRotateComplete.name:
		possible = phase == gardencorev1beta1.RotationPrepared
	}
	if possible {
		return nil
	}
	return &RotationError{Verb: v.name, Phase: phase}
}

// readyForRotation is isShootReadyForRotationStart of the same file.
func readyForRotation(last *gardencorev1beta1.LastOperation) bool {
	if last == nil {
		return false
	}
	switch last.Type {
	case gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationTypeRestore:
		return last.State == gardencorev1beta1.LastOperationStateSucceeded
	case gardencorev1beta1.LastOperationTypeReconcile:
		return true
	default:
		return false
	}
}
