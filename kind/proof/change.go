package proof

import "fmt"

// AnnotateCaches returns a harmless change for the scenario inner-loop: the StatefulSets of caches
// get an annotation with the name mark.
func AnnotateCaches(mark string) Mutant {
	const line = "resourcesv1alpha1.FinalizeDeletionAfter: finalizeDeletionAfter,"
	return Mutant{
		Name: "annotation", File: "controller/cache/statefulset.go", Line: line, Replacement: line + fmt.Sprintf(" %q: \"\",", mark),
	}
}

// AnswerMark returns a harmless change for the scenario inner-loop: the debug server of caches
// serves /<mark>, and the response is mark.
func AnswerMark(mark string) Mutant {
	const line = `mux.Handle("/debug/", http.DefaultServeMux)`
	const answer = `; mux.HandleFunc("/%[1]s", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("%[1]s")) })`
	return Mutant{
		Name: "path", File: "cmd/registry-cache/registry/debug.go", Line: line, Replacement: line + fmt.Sprintf(answer, mark),
	}
}
