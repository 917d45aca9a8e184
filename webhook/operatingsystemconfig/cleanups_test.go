package operatingsystemconfig

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// TestUnitAfterCleanUps checks that the unit changes after a clean-up, although the caches are the
// same. The clean-up may have changed the nodes.
func TestUnitAfterCleanUps(t *testing.T) {
	const config = `"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":[]`
	for name, test := range map[string]struct {
		state string
		want  string
	}{
		"no state":         {"", nodeconfig.Unit([]nodeconfig.Registry{alpha}, 0)},
		"no clean-up":      {"{" + config + "}", nodeconfig.Unit([]nodeconfig.Registry{alpha}, 0)},
		"three clean-ups":  {"{" + config + `,"cleanUps":3}`, nodeconfig.Unit([]nodeconfig.Registry{alpha}, 3)},
		"one, no config":   {`{"cleanUps":1}`, nodeconfig.Unit([]nodeconfig.Registry{alpha}, 1)},
		"cannot be parsed": {`{"cleanUps":"x"}`, nodeconfig.Unit([]nodeconfig.Registry{alpha}, 0)},
		"other version":    {`{"apiVersion":"registry.extensions.gardener.cloud/v1beta1","kind":"RegistryConfig","cleanUps":3}`, nodeconfig.Unit([]nodeconfig.Registry{alpha}, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			extension := newExtension(status(alphaStatus))
			if test.state != "" {
				extension.Status.State = &runtime.RawExtension{Raw: []byte(test.state)}
			}
			shoot := &gardencorev1beta1.Shoot{}
			manager := newManager(t, shoot, client.Object(extension))
			unit, err := unitSource{clusters: manager.GetClient(), extensions: manager.GetAPIReader()}.unit(t.Context(), namespace)
			if (err != nil) != (test.want == "") {
				t.Fatalf("error %v", err)
			}
			if got := contentOf(unit); got != test.want {
				t.Errorf("the unit is\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func contentOf(unit *extensionsv1alpha1.Unit) string {
	if unit == nil {
		return ""
	}
	return *unit.Content
}
