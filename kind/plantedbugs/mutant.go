package plantedbugs

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Mutant is one planted bug.
type Mutant struct {
	Name string `json:"name"`
	File string `json:"file"` // the path in the repository
	// Replacement replaces Line, which must be unique in the file. Both are without indentation.
	Line        string `json:"line"`
	Replacement string `json:"replacement"`
	Bug         string `json:"bug"` // the effect of the wrong line
	// Scenarios must fail, and each Outcome.Reason must contain Words. Otherwise the scenarios have
	// not detected the bug. Words start with the name of the step if the message is too general.
	Scenarios []string `json:"scenarios"`
	Words     string   `json:"words"`
}

// OfTestbed reports whether the bug is in the testbed's code, which is in no image.
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

// Select returns the planted bugs with these names, or all if there are no names. It keeps the
// order of All.
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

// Apply returns the source with the bug, or an error if the line is missing or not unique.
func (m Mutant) Apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	isLine := func(line string) bool { return strings.TrimSpace(line) == m.Line }
	at := slices.IndexFunc(lines, isLine)
	if at < 0 {
		return "", fmt.Errorf("planted bug %s: line %q not found in %s", m.Name, m.Line, m.File)
	}
	if next := slices.IndexFunc(lines[at+1:], isLine); next >= 0 {
		return "", fmt.Errorf("planted bug %s: lines %d and %d of %s are both %q", m.Name, at+1, at+next+2, m.File, m.Line)
	}
	indentation, _, _ := strings.Cut(lines[at], m.Line)
	lines[at] = indentation + m.Replacement
	return strings.Join(lines, "\n"), nil
}

// Overlay writes the source with the bug to the folder and returns a file for `go build -overlay`.
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

// AnnotateCaches returns a change for scenario inner-loop: it annotates the StatefulSets of caches.
func AnnotateCaches(mark string) Mutant {
	const line = "resourcesv1alpha1.FinalizeDeletionAfter: finalizeDeletionAfter,"
	return Mutant{
		Name: "annotation", File: "controller/cache/statefulset.go", Line: line, Replacement: line + fmt.Sprintf(" %q: \"\",", mark),
	}
}

// AnswerMark returns a change for scenario inner-loop: the debug server of caches serves /<mark>.
func AnswerMark(mark string) Mutant {
	const line = `mux := http.NewServeMux()`
	const answer = `; mux.HandleFunc("/%[1]s", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("%[1]s")) })`
	return Mutant{
		Name: "path", File: "registry/serve.go", Line: line, Replacement: line + fmt.Sprintf(answer, mark),
	}
}

// Plant makes bringup.Up build the images with the named bug, or without a bug if name is "". It
// returns an error for an unknown bug, and for a bug in the testbed itself, which is in no image.
func Plant(t *kind.Testbed, name string) error {
	if name == "" {
		t.Planted = nil
		return nil
	}
	found, err := plantable(name)
	if err != nil {
		return err
	}
	t.Planted = &kind.PlantedBug{Name: found.Name, Overlay: found.Overlay}
	return nil
}

// PlanPlant returns what bringup.Up does after Plant with the name, one line for each step.
func PlanPlant(name string) ([]string, error) {
	if name == "" {
		return []string{"build the images from the unchanged sources", "bring the testbed to its initial state"}, nil
	}
	bug, err := plantable(name)
	if err != nil {
		return nil, err
	}
	return []string{
		"build the images with one line of " + bug.File + " replaced:", "- " + bug.Line, "+ " + bug.Replacement,
		"bring the testbed to its initial state with these images",
	}, nil
}

func plantable(name string) (Mutant, error) {
	found, err := Find(name)
	if err == nil && found.OfTestbed() {
		err = fmt.Errorf("planted bug %s is in the testbed itself (%s), not in an image: use `testbed mutate prove %s`",
			name, found.File, name)
	}
	return found, err
}

// Plan returns the runs of Prove as shell commands.
func Plan(bugs []Mutant) []string {
	lines := []string{runCommand(ScenariosOf(bugs)) + "  # must pass"}
	for _, bug := range bugs {
		run := runCommand(bug.Scenarios) + " MUTANT=" + bug.Name + "  #"
		if bug.OfTestbed() {
			run = runCommand(bug.Scenarios) + "  # built with the bug " + bug.Name + ","
		}
		lines = append(lines, run+" must fail", "make up")
	}
	return lines
}

func runCommand(scenarios []string) string {
	return "make e2e KEEP=1 RUN='^(" + strings.Join(scenarios, "|") + ")$'"
}
