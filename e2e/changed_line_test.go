package e2e

import (
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind/proof"
)

// The changes that the scenario inner-loop makes to a copy of the sources, a line each. The mark is in no cache of before, so that
// nothing comes from Go's build cache that a user would have to wait for.

// changeOfController gives the StatefulSets of caches an annotation, whose name is the mark.
func changeOfController(mark string) proof.Mutant {
	const line = "resourcesv1alpha1.FinalizeDeletionAfter: finalizeDeletionAfter,"
	return proof.Mutant{
		Name: "annotation", File: "controller/cache/statefulset.go", Line: line, Replacement: line + fmt.Sprintf(" %q: \"\",", mark),
	}
}

// changeOfRegistry makes the debug server of caches answer for the path /<mark>, with the mark.
func changeOfRegistry(mark string) proof.Mutant {
	const line = `mux.Handle("/debug/", http.DefaultServeMux)`
	const answer = `; mux.HandleFunc("/%[1]s", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("%[1]s")) })`
	return proof.Mutant{
		Name: "path", File: "cmd/registry-cache/registry/debug.go", Line: line, Replacement: line + fmt.Sprintf(answer, mark),
	}
}
