package spec

import (
	"strings"
	"testing"
)

// TestShapes checks that the options of each kind exist, and that each kind can be created and
// described.
func TestShapes(t *testing.T) {
	known := map[string]bool{}
	for _, option := range Options() {
		known[option.Name] = true
	}
	values := given{"status": {"500"}, "delay": {"1s"}, "rate": {"1"}, "accept": {sum}, "name": {"quay"}}
	for _, s := range shapes {
		for _, name := range s.options() {
			if !known[name] {
				t.Errorf("%s of %s has the unknown option --%s", s.kind, s.role, name)
			}
		}
		needed := given{}
		if s.needs != "" {
			needed[s.needs] = values[s.needs]
		}
		f, err := New(s.role.targets(), string(s.kind), needed)
		if err != nil || f.Effect() == "" || f.OneShot() != s.oneShot {
			t.Errorf("%s of %s: %+v, %v", s.kind, s.role, f, err)
		}
		if !strings.Contains(Catalog(), string(s.kind)) {
			t.Errorf("%s is missing in the catalog", s.kind)
		}
	}
}
