package spec

import (
	"slices"
	"testing"
)

// TestKinds checks that each role has kinds, and that an unknown role has none.
func TestKinds(t *testing.T) {
	for _, role := range Roles() {
		kinds := Kinds(role)
		if len(kinds) == 0 {
			t.Errorf("%s: no kinds", role)
		}
		for _, kind := range kinds {
			if _, err := shapeOf(role, kind); err != nil {
				t.Error(err)
			}
		}
	}
	if got := Kinds(Cache); !slices.Contains(got, DiskFull) || slices.Contains(got, Hang) {
		t.Errorf("a cache has %q", got)
	}
	if got := Kinds("pod"); got != nil {
		t.Errorf("an unknown role has %q", got)
	}
}
