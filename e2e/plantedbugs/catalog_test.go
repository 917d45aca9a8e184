package plantedbugs

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// root returns the absolute path of the repository.
func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCatalog checks that each bug is complete, names an existing scenario and an existing step,
// and still applies and compiles.
func TestCatalog(t *testing.T) {
	t.Parallel()
	scenarios, seen := sources(t), map[string]bool{}
	for _, bug := range slices.Concat(bugs, inGarden) {
		if seen[bug.name] || bug.name == "" || bug.effect == "" || bug.reason == "" || bug.Old == bug.New {
			t.Errorf("bug %q is incomplete, or its name is not unique", bug.name)
		}
		seen[bug.name] = true
		if !strings.Contains(scenarios, `rig.New("`+bug.scenario+`"`) {
			t.Errorf("%s: unknown scenario %s", bug.name, bug.scenario)
		}
		step, _, named := strings.Cut(bug.reason, ": ")
		if named && !strings.HasPrefix(bug.reason, notUp) && !strings.Contains(scenarios, `rig.Prove("`+step+`"`) {
			t.Errorf("%s: unknown step %q", bug.name, step)
		}
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			overlay, err := bug.overlay(root(t), folder)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Ext(bug.File) == ".yaml" {
				if content, err := os.ReadFile(filepath.Join(folder, filepath.Base(bug.File))); err != nil || yaml.UnmarshalStrict(content, &map[string]any{}) != nil {
					t.Errorf("the changed file cannot be parsed (%v):\n%s", err, content)
				}
			}
			cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./"+filepath.Dir(bug.File))
			if filepath.Ext(bug.File) == ".sh" {
				cmd = exec.CommandContext(t.Context(), "bash", "-n", filepath.Join(folder, filepath.Base(bug.File)))
			}
			cmd.Dir = root(t)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestGarden checks that the garden lane runs the scenarios that must catch the bugs in a garden.
func TestGarden(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(filepath.Join(root(t), gardenFile))
	if err != nil {
		t.Fatal(err)
	}
	lane := regexp.MustCompile(`(?m)^# scenarios: (.*)$`).FindSubmatch(file)
	for _, bug := range inGarden {
		if matches, err := regexp.MatchString(string(lane[1]), bug.scenario); err != nil || !matches {
			t.Errorf("%s: %s does not run %s (%v)", bug.name, gardenFile, bug.scenario, err)
		}
	}
}

// sources returns the Go code of all scenarios.
func sources(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestInnerLoop checks that the changes of scenario inner-loop apply, and that the result parses.
func TestInnerLoop(t *testing.T) {
	t.Parallel()
	for _, change := range []Change{AnnotateCaches("e2e-mark"), AnswerMark("e2e-mark")} {
		changed, err := change.Apply(root(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), change.File, changed, 0); err != nil || !strings.Contains(changed, "e2e-mark") {
			t.Errorf("the changed %s does not parse: %v", change.File, err)
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, tc := range []struct{ source, want, err string }{
		{"if a {\n", "if true {\n", ""},
		{"", "", `it has "if a {" 0 times`},
		{"if a {\n}\nif a {\n", "", `2 times`},
	} {
		if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte(tc.source), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Change{"a.go", "if a {", "if true {"}.Apply(folder)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got %q, error %v", tc.source, got, err)
		}
	}
}

// TestDocs compares the table of docs/planted-bugs.md with the catalog.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/planted-bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, bug := range slices.Concat(bugs, inGarden) {
		rows.WriteString("| `" + bug.name + "` | " + bug.effect + " | `" + bug.scenario + "` |\n")
	}
	if !strings.Contains(string(page), "| --- | --- | --- |\n"+rows.String()+"\n") {
		t.Errorf("docs/planted-bugs.md wants this table:\n%s", rows.String())
	}
}
