package develop

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

func TestPredecessors(t *testing.T) {
	const repository = "registry-cache.testbed/registry-cache:"
	id := func(digit string) string { return strings.Repeat(digit, 64) }
	present := []string{
		repository + id("1"), repository + id("2"), repository + id("3"),
		repository + "0123456789ab", // what Up loaded
		"registry-cache.testbed/registry-cache-extension:" + id("1"),
		"sha256:" + id("4"),
	}
	running := strings.Fields("CONTAINER IMAGE RUNTIME\nabc " + repository + id("2") + " io.containerd.runc.v2\n")
	got := predecessors(present, running, repository+id("3"))
	if want := []string{repository + id("1")}; !slices.Equal(got, want) {
		t.Errorf("to be removed: %v, want %v", got, want)
	}
}

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
