package operate

import (
	"errors"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// allStages are Shoots in the stages that an operation leaves when it fails. next is the command
// that the error suggests.
var allStages = []struct {
	stage gardenlet.Stage
	last  gardencorev1beta1.LastOperationType
	next  string
}{
	{gardenlet.StageAbsent, "", "shoot apply"},
	{gardenlet.StagePresent, gardencorev1beta1.LastOperationTypeReconcile, "possible"},
	{gardenlet.StageMigrating, gardencorev1beta1.LastOperationTypeMigrate, "shoot migrate"},
	{gardenlet.StageRestoring, gardencorev1beta1.LastOperationTypeRestore, "shoot migrate"},
	{gardenlet.StageDeleting, gardencorev1beta1.LastOperationTypeDelete, "shoot delete"},
}

// operation returns the operation with the given name.
func operation(t *testing.T, name string) Operation {
	t.Helper()
	for _, o := range append(Operations(), Apply(nil)) {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("no operation %s", name)
	return Operation{}
}

func TestOperationsAndStages(t *testing.T) {
	for _, tc := range []struct {
		name string
		from string // the stages in which the operation is possible
	}{
		{"apply", "absent present migrating restoring"},
		{"disable", "present"},
		{"hibernate", "present"},
		{"wake", "present"},
		{"delete", "absent present deleting"},
		{"migrate", "present migrating restoring"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, at := range allStages {
				var shoot *gardencorev1beta1.Shoot
				if at.last != "" {
					shoot = gardenlet.Shoot()
					shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: at.last, State: "Error"}
				}
				err := operation(t, tc.name).possible(shoot)
				if possible := strings.Contains(" "+tc.from+" ", " "+string(at.stage)+" "); possible != (err == nil) {
					t.Errorf("%s: error %v, possible is %v", at.stage, err, possible)
				}
				if err == nil {
					continue
				}
				if !errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), at.next) {
					t.Errorf("%s: error %v, want a RefusedError that names %q", at.stage, err, at.next)
				}
			}
		})
	}
}

func TestWithoutExtension(t *testing.T) {
	shoot := gardenlet.Shoot(gardenlet.Extension("other", nil), gardenlet.Extension("installed", nil))
	shoot.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "a"}}
	got := without(shoot, "installed")
	if len(got.Spec.Extensions) != 1 || got.Spec.Extensions[0].Type != "other" || len(got.Spec.Resources) != 1 {
		t.Errorf("left are %+v", got.Spec)
	}
	if len(shoot.Spec.Extensions) != 2 {
		t.Error("the argument was changed")
	}
	if others := OtherExtensions(&kind.Testbed{Extension: kind.Extension{Name: "installed"}}, shoot); len(others) != 1 || others[0] != "other" {
		t.Errorf("other extensions: %v", others)
	}
}
