package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Mutant is one planted bug.
type Mutant struct {
	Name string `json:"name"`
	File string `json:"file"` // the path in the repository
	// Line is the original line, which must be unique in the file, Replacement the wrong one, both
	// without indentation.
	Line        string `json:"line"`
	Replacement string `json:"replacement"`
	Bug         string `json:"bug"` // the effect of the wrong line
	// Scenarios must fail, and the Outcome.Reason of each must contain Words: a scenario that fails
	// for another reason has not detected the bug. Words start with the name of the step where the
	// message alone is too general.
	Scenarios []string `json:"scenarios"`
	Words     string   `json:"words"`
}

// OfTestbed reports whether the bug is in the testbed. It is then built into the program that runs
// the scenarios, and not into images.
func (m Mutant) OfTestbed() bool { return strings.HasPrefix(m.File, "kind/") }

// Find returns the planted bug with a name. The error lists all names.
func Find(name string) (Mutant, error) {
	var names []string
	for _, m := range All() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Mutant{}, fmt.Errorf("unknown planted bug %q, use one of %s", name, strings.Join(names, ", "))
}

// Select returns the planted bugs with these names in the order of All, or all without names.
func Select(names ...string) ([]Mutant, error) {
	if len(names) == 0 {
		return All(), nil
	}
	for _, name := range names {
		if _, err := Find(name); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(All(), func(m Mutant) bool { return !slices.Contains(names, m.Name) }), nil
}

// ScenariosOf returns the scenarios of the planted bugs, without duplicates.
func ScenariosOf(all []Mutant) []string {
	var names []string
	for _, m := range all {
		for _, name := range m.Scenarios {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Apply returns the source with the bug. It returns an error unless the source has the line once:
// otherwise the code has changed, and the bug must be adapted.
func (m Mutant) Apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	at := -1
	for i, line := range lines {
		if strings.TrimSpace(line) != m.Line {
			continue
		}
		if at >= 0 {
			return "", fmt.Errorf("planted bug %s: lines %d and %d of %s are both %q", m.Name, at+1, i+1, m.File, m.Line)
		}
		at = i
	}
	if at < 0 {
		return "", fmt.Errorf("planted bug %s: line %q not found in %s", m.Name, m.Line, m.File)
	}
	indentation := lines[at][:strings.Index(lines[at], m.Line)]
	lines[at] = indentation + m.Replacement
	return strings.Join(lines, "\n"), nil
}

// Overlay writes the file with the bug and the JSON file for `go build -overlay` to the folder, which
// may have files of another bug. It returns the path of the JSON file. root is the repository.
func (m Mutant) Overlay(root, folder string) (string, error) {
	original := filepath.Join(root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	planted, err := m.Apply(string(source))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	replacement := filepath.Join(folder, path.Base(m.File))
	if err := file.Replace(replacement, []byte(planted), 0o644); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, file.Replace(overlay, content, 0o644)
}

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
