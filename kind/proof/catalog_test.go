package proof

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/fieldbugs"
)

const root = "../.."

func TestCatalog(t *testing.T) {
	all := All()
	if len(all) < 10 {
		t.Errorf("%d planted bugs, want at least 10", len(all))
	}
	name, seen, known := regexp.MustCompile(`^[a-z][a-z0-9-]*$`), map[string]bool{}, scenarios(t)
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			if !name.MatchString(m.Name) || seen[m.Name] {
				t.Errorf("name %q is invalid or not unique", m.Name)
			}
			seen[m.Name] = true
			if m.Line == m.Replacement || m.Line != strings.TrimSpace(m.Line) || m.Replacement != strings.TrimSpace(m.Replacement) {
				t.Errorf("line %q, replacement %q", m.Line, m.Replacement)
			}
			if m.Bug == "" || m.Words == "" || len(m.Scenarios) == 0 {
				t.Error("Bug, Words or Scenarios is empty")
			}
			for _, scenario := range m.Scenarios {
				if !known[scenario] {
					t.Errorf("unknown scenario %s", scenario)
				}
			}
			if step, _, named := strings.Cut(m.Words, ": "); named && !known[step] {
				t.Errorf("unknown step %q", step)
			}
		})
	}
}

// TestApplies checks that each bug replaces one line of the current code, and that the result
// compiles.
func TestApplies(t *testing.T) {
	t.Parallel()
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			absolute, err := filepath.Abs(root)
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			overlay, err := m.Overlay(absolute, folder)
			if err != nil {
				t.Fatal(err)
			}
			original, err := os.ReadFile(filepath.Join(root, m.File))
			if err != nil {
				t.Fatal(err)
			}
			planted, err := os.ReadFile(filepath.Join(folder, path.Base(m.File)))
			if err != nil {
				t.Fatal(err)
			}
			if different(string(original), string(planted)) != 1 {
				t.Errorf("not exactly one line is different")
			}
			compile(t, m, overlay, planted)
		})
	}
}

// different returns the number of lines that differ.
func different(a, b string) int {
	count, other := 0, strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(other) || other[i] != line {
			count++
		}
	}
	return count
}

func compile(t *testing.T, m Mutant, overlay string, planted []byte) {
	t.Helper()
	cmd := exec.Command("go", "build", "-overlay", overlay, "./"+path.Dir(m.File))
	cmd.Dir = root
	if path.Ext(m.File) == ".sh" {
		cmd = exec.Command("bash", "-n")
		cmd.Stdin = bytes.NewReader(planted)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// scenarios returns the names of all scenarios and of their steps: the first argument of each call
// of rig.New and rig.Prove in e2e, and the IDs of field bugs.
func scenarios(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, bug := range fieldbugs.All() {
		names[bug.ID] = true
	}
	fromBugs := len(names)
	files, err := filepath.Glob(filepath.Join(root, "e2e", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			literal, isLiteral := call.Args[0].(*ast.BasicLit)
			if isLiteral && literal.Kind == token.STRING &&
				slices.Contains([]string{"rig.New", "rig.Prove"}, types.ExprString(call.Fun)) {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				names[text] = true
			}
			return true
		})
	}
	if found := len(names) - fromBugs; found < 100 {
		t.Fatalf("found only %d scenarios and steps in e2e, want at least 100", found)
	}
	return names
}

// TestDocs compares the table of docs/planted-bugs.md with All.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "planted-bugs.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, m := range All() {
		rows.WriteString("| `" + m.Name + "` | " + m.Bug + " | `" + strings.Join(m.Scenarios, "`, `") + "` |\n")
	}
	if !strings.Contains(string(page), "| --- | --- | --- |\n"+rows.String()+"\n") {
		t.Errorf("docs/planted-bugs.md wants this table:\n%s", rows.String())
	}
}
