package proof

import (
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	m := Mutant{Name: "bug", File: "a.go", Line: "if a {", Replacement: "if true {"}
	for _, tc := range []struct{ name, source, want, err string }{
		{name: "once", source: "x\n\t\tif a {\n\t\t}\n", want: "x\n\t\tif true {\n\t\t}\n"},
		{name: "the last line", source: "if a {", want: "if true {"},
		{name: "part of a line", source: "else if a {\n", err: `line "if a {" not found in a.go`},
		{name: "missing", source: "", err: "planted bug bug"},
		{name: "twice", source: "if a {\n}\n\tif a {\n", err: "lines 1 and 3 of a.go are both"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := m.Apply(tc.source)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	all := All()
	last, first := all[len(all)-1].Name, all[0].Name
	selected, err := Select(last, first)
	if err != nil || len(selected) != 2 || selected[0].Name != first {
		t.Errorf("selected %v, error %v", selected, err)
	}
	if selected, err := Select(); err != nil || len(selected) != len(all) {
		t.Errorf("without names: %d, error %v", len(selected), err)
	}
	if _, err := Select(first, "other"); err == nil || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("unknown: error %v", err)
	}
}

func TestScenariosOf(t *testing.T) {
	got := ScenariosOf([]Mutant{{Scenarios: []string{"b", "a"}}, {Scenarios: []string{"a", "c"}}})
	if strings.Join(got, " ") != "b a c" {
		t.Errorf("got %q", got)
	}
}
