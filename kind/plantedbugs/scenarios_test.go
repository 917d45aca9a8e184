package plantedbugs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scenarios returns the names of all scenarios and of their steps: the first argument of each call
// of rig.New and rig.Prove in e2e.
func scenarios(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
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
	if len(names) < 100 {
		t.Fatalf("found only %d scenarios and steps in e2e, want at least 100", len(names))
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
