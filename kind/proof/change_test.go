package proof

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
