package pull

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
)

// TestPlanImageRefuses: a plan refuses what BuildImage refuses.
func TestPlanImageRefuses(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, reference, want string }{
		{kind.ImageResourceManager, "registry-cache.testbed/x:1", "use one of registry-cache-extension, registry-cache"},
		{kind.ImageCache, "registry-cache.testbed/Upper:1", "reference of image registry-cache"},
		{kind.ImageCache, "", "reference of image registry-cache"},
	} {
		lines, err := develop.PlanImage(testbed, develop.ImageBuild{Name: tc.name, Reference: tc.reference})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("image %q as %q: %q, error %v, want it to contain %q", tc.name, tc.reference, lines, err, tc.want)
		}
	}
}
