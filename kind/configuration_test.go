package kind

import (
	"reflect"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/configuration"
)

func TestIPFamilies(t *testing.T) {
	config := configuration.Default()
	testbed, err := New(Options{Directory: t.TempDir(), Configuration: config})
	if err != nil {
		t.Fatal(err)
	}
	for family, want := range map[configuration.IPFamily][]gardencorev1beta1.IPFamily{
		configuration.IPv4:      {gardencorev1beta1.IPFamilyIPv4},
		configuration.IPv6:      {gardencorev1beta1.IPFamilyIPv6},
		configuration.DualStack: {gardencorev1beta1.IPFamilyIPv4, gardencorev1beta1.IPFamilyIPv6},
	} {
		config.Shoot.IPFamily = family
		if got := testbed.ipFamilies(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", family, got)
		}
	}
}
