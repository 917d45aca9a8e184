package operate

import (
	"errors"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

func TestRotationsThatGardenerRefuses(t *testing.T) {
	reconciled := &gardencorev1beta1.LastOperation{Type: "Reconcile", State: "Error"}
	for _, tc := range []struct {
		name  string
		verb  string
		phase gardencorev1beta1.CredentialsRotationPhase
		last  *gardencorev1beta1.LastOperation
		next  string // the command in the error; empty if the operation is possible
	}{
		{"the first start", rotateStart, "", reconciled, ""},
		{"a start after a rotation", rotateStart, "Completed", reconciled, ""},
		{"a start after creation", rotateStart, "", &gardencorev1beta1.LastOperation{Type: "Create", State: "Succeeded"}, ""},
		{"a start after restoration", rotateStart, "", &gardencorev1beta1.LastOperation{Type: "Restore", State: "Succeeded"}, ""},
		{"a start while it is created", rotateStart, "", &gardencorev1beta1.LastOperation{Type: "Create", State: "Processing"}, "shoot reconcile"},
		{"a start without an operation", rotateStart, "", nil, "shoot reconcile"},
		{"a start that was interrupted", rotateStart, "Preparing", reconciled, "shoot reconcile"},
		{"a second start", rotateStart, "Prepared", reconciled, "rotate-ca-complete"},
		{"a start before the end", rotateStart, "Completing", reconciled, "shoot reconcile"},
		{"a start while machines are replaced", rotateStart, "WaitingForWorkersRollout", reconciled, "WaitingForWorkersRollout"},
		{"the end", rotateComplete, "Prepared", reconciled, ""},
		{"an end without a start", rotateComplete, "", reconciled, "rotate-ca-start"},
		{"a second end", rotateComplete, "Completed", reconciled, "rotate-ca-start"},
		{"an end too early", rotateComplete, "Preparing", reconciled, "shoot reconcile"},
		{"an end that was interrupted", rotateComplete, "Completing", reconciled, "shoot reconcile"},
		{"another verb", "reconcile", "Preparing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			shoot := gardenlet.Shoot()
			shoot.Status.LastOperation = tc.last
			if tc.phase != "" {
				shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: tc.phase},
				}}
			}
			err := operation(t, tc.verb).possible(shoot)
			if (err == nil) != (tc.next == "") {
				t.Fatalf("error %v, possible is %t", err, tc.next == "")
			}
			if err != nil && (!errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), tc.next)) {
				t.Errorf("error %v, want a RefusedError that names %q", err, tc.next)
			}
		})
	}
}
