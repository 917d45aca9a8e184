package kind

import (
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/image"
)

func TestMissingImages(t *testing.T) {
	one, two := image.Built{Ref: "registry-cache.testbed/one:1"}, image.Built{Ref: "registry-cache.testbed/two:1"}
	missing := missingImages([]image.Built{one, two}, []string{"registry-cache.testbed/one:1", "registry-cache.testbed/two:0"})
	if len(missing) != 1 || missing[0].Ref != two.Ref {
		t.Errorf("missing = %v, want only %s", missing, two.Ref)
	}
}
