package status

import (
	"bytes"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// TestGarden: the table shows each Shoot's last operation, and what is wrong with it.
func TestGarden(t *testing.T) {
	good, bad := &gardencorev1beta1.Shoot{}, &gardencorev1beta1.Shoot{}
	good.Name, bad.Name = "good", "bad"
	good.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", Progress: 100}
	good.Status.Conditions = []gardencorev1beta1.Condition{{Type: "A", Status: gardencorev1beta1.ConditionTrue, Message: "fine"}}
	bad.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "task failed"}}
	bad.Status.Conditions = []gardencorev1beta1.Condition{{Type: "B", Status: gardencorev1beta1.ConditionFalse, Message: "a pod is missing"}}
	for name, tc := range map[string]struct {
		garden *Garden
		want   string
	}{
		"none":    {nil, ""},
		"problem": {&Garden{Problem: "no answer"}, "GARDEN\tno answer\n"},
		"shoots": {&Garden{Renewed: time.Now(), Shoots: []GardenShoot{gardenShoot(good), gardenShoot(bad)}}, strings.Join([]string{
			"GARDEN\tgardenlet renewed its lease 0s ago", "  ✓ good\tReconcile Succeeded 100 %", "  ✗ bad\tno operation yet",
			"      task failed", "      B False: a pod is missing", "",
		}, "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			(&Testbed{Garden: tc.garden}).writeGarden(&out)
			if out.String() != tc.want {
				t.Errorf("got %q, want %q", &out, tc.want)
			}
		})
	}
	if err := (&Garden{}).read(t.Context(), nil); err == nil || err.Error() != "the seed does not answer" {
		t.Errorf("without a seed: %v", err)
	}
}
