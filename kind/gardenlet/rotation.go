package gardenlet

import (
	"fmt"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// rotated returns the process for a phase of the CA rotation.
func rotated(phase gardencorev1beta1.CredentialsRotationPhase) (process, error) {
	switch phase {
	case gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationCompleting:
		return process{newGraph: reconcileGraph, rotation: phase}, nil
	default:
		return process{}, fmt.Errorf("CA rotation has no phase %q to run: want %s or %s",
			phase, gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationCompleting)
	}
}

// startRotation starts a phase like gardenlet does for the operations rotate-ca-start and
// rotate-ca-complete. It changes nothing if the phase has already started, because its flow failed.
func startRotation(shoot *gardencorev1beta1.Shoot, phase gardencorev1beta1.CredentialsRotationPhase) {
	if v1beta1helper.GetShootCARotationPhase(shoot.Status.Credentials) == phase {
		return
	}
	v1beta1helper.MutateShootCARotation(shoot, func(rotation *gardencorev1beta1.CARotation) {
		rotation.Phase = phase
		if phase == gardencorev1beta1.RotationCompleting {
			rotation.LastCompletionTriggeredTime = now()
			return
		}
		rotation.LastInitiationTime = now()
		rotation.LastInitiationFinishedTime, rotation.LastCompletionTriggeredTime = nil, nil
	})
}

// finishRotation ends the current phase like gardenlet does after a successful flow.
func finishRotation(shoot *gardencorev1beta1.Shoot) {
	phase := v1beta1helper.GetShootCARotationPhase(shoot.Status.Credentials)
	if phase != gardencorev1beta1.RotationPreparing && phase != gardencorev1beta1.RotationCompleting {
		return
	}
	v1beta1helper.MutateShootCARotation(shoot, func(rotation *gardencorev1beta1.CARotation) {
		if phase == gardencorev1beta1.RotationPreparing {
			rotation.Phase, rotation.LastInitiationFinishedTime = gardencorev1beta1.RotationPrepared, now()
			return
		}
		rotation.Phase, rotation.LastCompletionTime = gardencorev1beta1.RotationCompleted, now()
		rotation.LastInitiationFinishedTime, rotation.LastCompletionTriggeredTime = nil, nil
	})
}
