package status

import (
	"bytes"
	"encoding/json"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestShootStatusWrite(t *testing.T) {
	shoot := gardenlet.Shoot()
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(true)}
	shoot.Status.IsHibernated = true
	shoot.Status.LastOperation = lastOperation("Reconcile", "Succeeded", "")
	dead := NewShoot(nil, "")
	dead.Problems = []string{"seed: the API server does not answer"}
	for _, tc := range []struct {
		name   string
		status *Shoot
	}{
		{"running", runningShootStatus()}, {"hibernated", NewShoot(shoot, gardenlet.StagePresent)}, {"absent", NewShoot(nil, gardenlet.StageAbsent)}, {"dead", dead},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tc.status.Write(&out); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "shoot-status-"+tc.name+".txt", out.Bytes())
		})
	}
}

func TestShootStatusJSON(t *testing.T) {
	for name, status := range map[string]*Shoot{"running": runningShootStatus(), "nothing": NewShoot(nil, "")} {
		encoded, err := json.MarshalIndent(status, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "shoot-status-"+name+".json", append(encoded, '\n'))
	}
}

func TestUnitThatCannotBeRead(t *testing.T) {
	config := &extensionsv1alpha1.OperatingSystemConfig{}
	config.Spec.Units = []extensionsv1alpha1.Unit{{Name: nodeconfig.UnitName, Content: ptr.To("[Service]\nExecStart=/bin/true\n")}}
	if got := configOf(config); !got.Configured || got.Problem == "" || len(got.Registries) > 0 {
		t.Errorf("got %+v", got)
	}
}
