package proof

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
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

func TestPlant(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cleaner-skipped": "", "": "", "no-such-bug": "cleaner-skipped", "hit-as-miss": "in the testbed itself",
	} {
		if err := Plant(testbed, name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", name, err, want)
		}
	}
}

func TestProveOnAnotherTestbed(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir(), Prefix: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := Prove(t.Context(), testbed, All()); report != nil || err == nil {
		t.Errorf("report %v, error %v", report, err)
	}
}

// TestPlantedOverlay checks that the overlay of a planted bug replaces one file, which exists.
func TestPlantedOverlay(t *testing.T) {
	testbed := kindtest.New(t, kind.Options{})
	if err := Plant(testbed, "not-atomic"); err != nil {
		t.Fatal(err)
	}
	path, err := testbed.Planted.Overlay(testbed.Root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &overlay); err != nil || len(overlay.Replace) != 1 {
		t.Errorf("overlay %s, error %v", content, err)
	}
	for original := range overlay.Replace {
		if _, err := os.Stat(original); err != nil {
			t.Error(err)
		}
	}
}
