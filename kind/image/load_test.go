package image

import "testing"

func TestMissingImages(t *testing.T) {
	one, two := Built{Ref: "registry-cache.testbed/one:1"}, Built{Ref: "registry-cache.testbed/two:1"}
	missing := missingImages([]Built{one, two}, []string{"registry-cache.testbed/one:1", "registry-cache.testbed/two:0"})
	if len(missing) != 1 || missing[0].Ref != two.Ref {
		t.Errorf("missing = %v, want only %s", missing, two.Ref)
	}
}
