package operate

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// WrongRotation says that a half of the rotation of the certificate authorities is not possible for the shoot as it stands, where a
// gardener-apiserver would refuse the annotation too. Nothing was changed.
type WrongRotation struct {
	// Verb is the operation that was asked for.
	Verb string
	// Phase is where the rotation stands; empty where there never was one.
	Phase gardencorev1beta1.CredentialsRotationPhase
}

// Error says what to do first.
func (e *WrongRotation) Error() string {
	var why string
	switch e.Phase {
	case gardencorev1beta1.RotationPreparing:
		why = "a rotation has begun and is not prepared: `testbed shoot reconcile` goes on with it"
	case gardencorev1beta1.RotationPrepared:
		why = "a rotation is prepared: `testbed shoot rotate-ca-complete` comes first"
	case gardencorev1beta1.RotationCompleting:
		why = "a rotation is being completed: `testbed shoot reconcile` goes on with it"
	case "", gardencorev1beta1.RotationCompleted:
		why = "no rotation is prepared: `testbed shoot rotate-ca-start` comes first"
		if e.Verb == verbRotateStart.name {
			why = "the shoot was not created successfully: `testbed shoot reconcile` comes first"
		}
	default:
		why = fmt.Sprintf("a rotation is in phase %s", e.Phase)
	}
	return fmt.Sprintf("shoot %s: %s", e.Verb, why)
}

// UsageError marks the error for internal/program: exit code 2.
func (*WrongRotation) UsageError() {}

// checkRotation says whether the verb is possible in this phase and after this operation, by the rules of gardener-apiserver for the
// annotations rotate-ca-start and rotate-ca-complete (validateShootOperationContext, pkg/api/core/validation/shoot.go). Other verbs
// are possible in each phase.
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
	return &WrongRotation{Verb: v.name, Phase: phase}
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
