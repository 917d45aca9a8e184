package status

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

var statusTime = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

func lastOperation(operation gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState, text string) *gardencorev1beta1.LastOperation {
	return &gardencorev1beta1.LastOperation{Type: operation, State: state, Description: text, Progress: 50, LastUpdateTime: statusTime}
}

const showOutput = `Id=one-of-an-extension.service
LoadState=loaded
ActiveState=activating
SubState=start
Result=success
NRestarts=3

Id=gardener-node-agent.service
LoadState=not-found
ActiveState=inactive
SubState=dead

Id=containerd.service
LoadState=loaded
ActiveState=failed
SubState=failed
Result=exit-code
NRestarts=0
`

func TestParseUnits(t *testing.T) {
	want := []string{"activating (start), restarts 3", "not-found", "failed (failed), result exit-code"}
	units := parseUnits(showOutput)
	if len(units) != len(want) {
		t.Fatalf("got %+v", units)
	}
	for i, unit := range units {
		if unit.line() != want[i] {
			t.Errorf("%s: %s, want %s", unit.Name, unit.line(), want[i])
		}
	}
}

func TestStateOfAShoot(t *testing.T) {
	for _, tc := range []struct {
		stage              gardenlet.Stage
		wanted, hibernated bool
		want               string
	}{
		{"", false, false, "not known"},
		{gardenlet.StageMigrated, true, true, "migrated"},
		{gardenlet.StagePresent, false, false, "awake"},
		{gardenlet.StagePresent, true, false, "to be hibernated"},
		{gardenlet.StagePresent, true, true, "hibernated"},
		{gardenlet.StagePresent, false, true, "to be woken up"},
	} {
		status := &Shoot{Stage: tc.stage, Hibernation: tc.wanted, Hibernated: tc.hibernated}
		if got := status.state(); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc, got, tc.want)
		}
	}
}
