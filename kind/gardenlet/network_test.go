package gardenlet

import (
	"reflect"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
)

// TestShootMatchesTheCluster: IP families and the number of machines, which extensions may use.
func TestShootMatchesTheCluster(t *testing.T) {
	const four, six = gardencorev1beta1.IPFamilyIPv4, gardencorev1beta1.IPFamilyIPv6
	for _, tc := range []struct {
		name           string
		families, want []gardencorev1beta1.IPFamily
		machines       int
		services       string
		workers        int32
	}{
		{"nothing is known", nil, []gardencorev1beta1.IPFamily{four}, 0, "10.96.0.0/16", 2},
		{"IPv4", []gardencorev1beta1.IPFamily{four}, []gardencorev1beta1.IPFamily{four}, 1, "10.96.0.0/16", 1},
		{"both", []gardencorev1beta1.IPFamily{four, six}, []gardencorev1beta1.IPFamily{four, six}, 3, "10.96.0.0/16", 3},
		{"IPv6", []gardencorev1beta1.IPFamily{six}, []gardencorev1beta1.IPFamily{six}, 2, "fd00:10:96::/112", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var shoot kubernetes.Interface = fakekubernetes.NewClientSet()
			g := &Gardenlet{Name: DefaultShoot, Shoot: shoot, IPFamilies: tc.families, Machines: make([]Machine, tc.machines)}
			before := Shoot()
			got := g.defaulted(before)
			if !reflect.DeepEqual(got.Spec.Networking.IPFamilies, tc.want) || *got.Spec.Networking.Services != tc.services ||
				primaryIPFamily(got) != tc.want[0] {
				t.Errorf("networking %+v", got.Spec.Networking)
			}
			if worker := got.Spec.Provider.Workers[0]; worker.Minimum != tc.workers || worker.Maximum != tc.workers {
				t.Errorf("%d to %d machines, want %d", worker.Minimum, worker.Maximum, tc.workers)
			}
			if !reflect.DeepEqual(before, Shoot()) {
				t.Error("the shoot that was passed in has changed")
			}
			if workerless := g.defaulted(Workerless(Shoot())); len(workerless.Spec.Provider.Workers) > 0 {
				t.Error("a shoot without workers got some")
			}
		})
	}
	if primaryIPFamily(&gardencorev1beta1.Shoot{}) != four {
		t.Error("a shoot without networking has no family")
	}
}
