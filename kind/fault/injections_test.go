package fault

import (
	"slices"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// TestInjections checks that injections and package spec contain the same kinds of faults.
func TestInjections(t *testing.T) {
	described := 0
	for _, role := range spec.Roles() {
		for _, kind := range spec.Kinds(role) {
			described++
			if injections[roleAndKind{role, kind}] == nil {
				t.Errorf("%s of %s is in package spec, but has no line in injections", kind, role)
			}
		}
	}
	for pair := range injections {
		if !slices.Contains(spec.Kinds(pair.role), pair.kind) {
			t.Errorf("%s of %s has a line in injections, but no shape in package spec", pair.kind, pair.role)
		}
	}
	if described != len(injections) || described == 0 {
		t.Errorf("%d faults are described, %d have an injection", described, len(injections))
	}
}
