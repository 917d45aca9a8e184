// Package plantedbugs tests that scenarios catch bugs. Each bug replaces one text of the sources. A
// test without a testbed checks that each bug still applies and compiles. The test with the build
// tag e2e (`make e2e-mutants`) rolls out each bug and runs its scenario, which must fail.
package plantedbugs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Change replaces one text of one file.
type Change struct {
	File     string // the path in the repository
	Old, New string // Old occurs in the file exactly once
}

// AnnotateCaches returns a change for scenario inner-loop: it annotates the StatefulSets of caches.
func AnnotateCaches(mark string) Change {
	const old = "resourcesv1alpha1.FinalizeDeletionAfter: finalizeDeletionAfter,"
	return Change{"controller/cache/statefulset.go", old, old + fmt.Sprintf(" %q: \"\",", mark)}
}

// AnswerMark returns a change for scenario inner-loop: the debug server of caches serves /<mark>.
func AnswerMark(mark string) Change {
	const old = `mux := http.NewServeMux()`
	const answer = `; mux.HandleFunc("/%[1]s", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("%[1]s")) })`
	return Change{"registry/serve.go", old, old + fmt.Sprintf(answer, mark)}
}

// Apply returns the changed content of the file below root.
func (c Change) Apply(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, c.File))
	if err != nil {
		return "", fmt.Errorf("change a file: %w", err)
	}
	if found := strings.Count(string(source), c.Old); found != 1 {
		return "", fmt.Errorf("change %s: it has %q %d times, want once", c.File, c.Old, found)
	}
	return strings.Replace(string(source), c.Old, c.New, 1), nil
}
