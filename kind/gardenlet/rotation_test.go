package gardenlet

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// TestRequestedRotations applies each operation to a Shoot that the earlier operations have
// changed, and ends its flow. The phases are those of the CAs, the service account key and etcd's
// key.
func TestRequestedRotations(t *testing.T) {
	const (
		none, preparing, prepared = "", string(gardencorev1beta1.RotationPreparing), string(gardencorev1beta1.RotationPrepared)
		completing, completed     = string(gardencorev1beta1.RotationCompleting), string(gardencorev1beta1.RotationCompleted)
	)
	shoot := Shoot()
	for _, step := range []struct {
		operation  string
		removed    bool
		begun, end [3]string
	}{
		{"maintain", false, [3]string{}, [3]string{}},
		{"rotate-ssh-keypair", true, [3]string{}, [3]string{}},
		{"rollout-workers=local", true, [3]string{}, [3]string{}},
		{"rotate-ca-complete", true, [3]string{}, [3]string{}}, // gardener-apiserver would refuse it
		{"rotate-ca-start", true, [3]string{preparing, none, none}, [3]string{prepared, none, none}},
		{"rotate-ca-complete", true, [3]string{completing, none, none}, [3]string{completed, none, none}},
		{"rotate-etcd-encryption-key", true, [3]string{completed, none, preparing}, [3]string{completed, none, completed}},
		{"rotate-serviceaccount-key-start-without-workers-rollout", true, [3]string{completed, preparing, completed}, [3]string{completed, prepared, completed}},
		{"rotate-rollout-workers=local", true, [3]string{completed, prepared, completed}, [3]string{completed, prepared, completed}},
		{"rotate-serviceaccount-key-complete", true, [3]string{completed, completing, completed}, [3]string{completed, completed, completed}},
		{"rotate-credentials-start", true, [3]string{preparing, preparing, preparing}, [3]string{prepared, prepared, completed}},
		{"rotate-credentials-complete", true, [3]string{completing, completing, completed}, [3]string{completed, completed, completed}},
	} {
		if removed := beginRequested(shoot, step.operation); removed != step.removed {
			t.Errorf("%s: removed from the annotation: %v", step.operation, removed)
		}
		if got := phases(shoot); got != step.begun {
			t.Errorf("%s begins with %q, want %q", step.operation, got, step.begun)
		}
		finishRotations(shoot)
		if got := phases(shoot); got != step.end {
			t.Errorf("%s ends with %q, want %q", step.operation, got, step.end)
		}
	}
	ca := shoot.Status.Credentials.Rotation.CertificateAuthorities
	if ca.LastInitiationTime == nil || ca.LastCompletionTime == nil || ca.LastInitiationFinishedTime != nil || ca.LastCompletionTriggeredTime != nil {
		t.Errorf("times of the CAs: %+v", ca)
	}
}

func phases(shoot *gardencorev1beta1.Shoot) (phases [3]string) {
	if shoot.Status.Credentials == nil {
		return phases
	}
	all := shoot.Status.Credentials.Rotation
	return [3]string{string(all.CertificateAuthorities.Phase), string(all.ServiceAccountKey.Phase), string(all.ETCDEncryptionKey.Phase)}
}
