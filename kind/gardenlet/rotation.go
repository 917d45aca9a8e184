package gardenlet

import (
	"strings"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Credentials, as operations name them. The testbed rotates only the CAs of extensions. kind owns
// the others, which only go through the phases.
const (
	allCredentials    = "credentials"
	caCredential      = "ca"
	keyCredential     = "serviceaccount-key"
	etcdKeyCredential = "etcd-encryption-key"
)

// rotation is the rotation of a credential in a Shoot's status. Its fields have the same names for
// all credentials.
type rotation struct {
	phase                                     *gardencorev1beta1.CredentialsRotationPhase
	initiated, prepared, triggered, completed **metav1.Time
}

// forEachRotation calls do for each credential.
func forEachRotation(shoot *gardencorev1beta1.Shoot, do func(credential string, r rotation)) {
	v1beta1helper.MutateShootCARotation(shoot, func(r *gardencorev1beta1.CARotation) {
		do(caCredential, rotation{&r.Phase, &r.LastInitiationTime, &r.LastInitiationFinishedTime, &r.LastCompletionTriggeredTime, &r.LastCompletionTime})
	})
	v1beta1helper.MutateShootServiceAccountKeyRotation(shoot, func(r *gardencorev1beta1.ServiceAccountKeyRotation) {
		do(keyCredential, rotation{&r.Phase, &r.LastInitiationTime, &r.LastInitiationFinishedTime, &r.LastCompletionTriggeredTime, &r.LastCompletionTime})
	})
	v1beta1helper.MutateShootETCDEncryptionKeyRotation(shoot, func(r *gardencorev1beta1.ETCDEncryptionKeyRotation) {
		do(etcdKeyCredential, rotation{&r.Phase, &r.LastInitiationTime, &r.LastInitiationFinishedTime, &r.LastCompletionTriggeredTime, &r.LastCompletionTime})
	})
}

// beginRotation starts a phase for a credential, or for allCredentials, as gardenlet does. It
// changes nothing if the phase cannot follow, for example because an earlier flow has started it
// and failed.
func beginRotation(shoot *gardencorev1beta1.Shoot, wanted string, phase gardencorev1beta1.CredentialsRotationPhase) {
	forEachRotation(shoot, func(credential string, r rotation) {
		none := *r.phase == "" || *r.phase == gardencorev1beta1.RotationCompleted
		switch {
		case credential != wanted && wanted != allCredentials:
		case phase == gardencorev1beta1.RotationPreparing && none:
			*r.phase, *r.initiated, *r.prepared, *r.triggered = phase, now(), nil, nil
		case phase == gardencorev1beta1.RotationCompleting && !none && *r.phase != phase:
			*r.phase, *r.triggered = phase, now()
		}
	})
}

// beginRequested starts the phases that an operation in the annotation gardener.cloud/operation
// requests. It returns false for operations that gardenlet does not remove from the annotation.
// Nodes are updated in place, so operations that roll out machines, or avoid that, need nothing
// else.
func beginRequested(shoot *gardencorev1beta1.Shoot, operation string) bool {
	credential, rotates := strings.CutPrefix(strings.TrimSuffix(operation, "-without-workers-rollout"), "rotate-")
	if !rotates {
		return strings.HasPrefix(operation, v1beta1constants.OperationRolloutWorkers)
	}
	phase := gardencorev1beta1.RotationPreparing
	if strings.HasSuffix(credential, "-complete") {
		phase = gardencorev1beta1.RotationCompleting
	}
	beginRotation(shoot, strings.TrimSuffix(strings.TrimSuffix(credential, "-start"), "-complete"), phase)
	return true
}

// finishRotations ends the current phases as gardenlet does after a successful flow. Since
// Kubernetes 1.34, the rotation of etcd's key has one phase.
func finishRotations(shoot *gardencorev1beta1.Shoot) {
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
		return
	}
	forEachRotation(shoot, func(credential string, r rotation) {
		switch {
		case *r.phase == gardencorev1beta1.RotationPreparing && credential != etcdKeyCredential:
			*r.phase, *r.prepared = gardencorev1beta1.RotationPrepared, now()
		case *r.phase == gardencorev1beta1.RotationPreparing, *r.phase == gardencorev1beta1.RotationCompleting:
			*r.phase, *r.completed, *r.prepared, *r.triggered = gardencorev1beta1.RotationCompleted, now(), nil, nil
		}
	})
}
