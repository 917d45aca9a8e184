package fault

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// TestInjections checks that prepare knows each fault, and that node.sh has each method.
func TestInjections(t *testing.T) {
	for _, role := range spec.Roles() {
		for _, kind := range spec.Kinds(role) {
			f := spec.Fault{Target: spec.Target{Role: role}, Kind: kind}
			method, argument := f.Method()
			known := f.AppliedByUpstream() || argument != "" || slices.Contains([]string{"answer", "loss"}, method) ||
				slices.Contains([]spec.Kind{spec.Kill, spec.RecreateService}, kind)
			if !known || method != "" && !strings.Contains(script, "\nfault_"+method+"() {") {
				t.Errorf("%s of %s, method %q: prepare or node.sh has no case", kind, role, method)
			}
		}
	}
}
