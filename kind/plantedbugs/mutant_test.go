package plantedbugs

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
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

// TestChangesApply checks that the lines that the scenario inner-loop changes exist, and that the
// result parses.
func TestChangesApply(t *testing.T) {
	t.Parallel()
	for _, change := range []Mutant{AnnotateCaches("e2e-mark"), AnswerMark("e2e-mark")} {
		t.Run(change.Name, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(change.File)))
			if err != nil {
				t.Fatal(err)
			}
			changed, err := change.Apply(string(source))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), change.File, changed, 0); err != nil || !strings.Contains(changed, "e2e-mark") {
				t.Errorf("the changed file does not parse: %v", err)
			}
		})
	}
}
