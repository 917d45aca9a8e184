package develop

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

func TestBuildImageRefusesBeforeItBuilds(t *testing.T) {
	testbed, err := kind.New(kind.Options{Extension: kind.Extension{Images: []kind.ExtensionImage{{Binary: image.Binary{Name: "one"}}, {Binary: image.Binary{Name: "two"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, reference, want string }{
		{kind.ImageResourceManager, "registry-cache.testbed/x:1", "use one of one, two"},
		{"two", "registry-cache.testbed/Upper:1", "reference of image two"},
		{"two", "", "reference of image two"},
	} {
		build := ImageBuild{Name: tc.name, Reference: tc.reference}
		if _, err := BuildImage(t.Context(), testbed, build); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("image %q as %q: error %v, want it to contain %q", tc.name, tc.reference, err, tc.want)
		}
	}
}
