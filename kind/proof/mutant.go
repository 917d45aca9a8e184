package proof

import (
	"fmt"
	"strings"
)

// Mutant is one planted bug.
type Mutant struct {
	Name string `json:"name"`
	// File is the path of the source below the root of the repository.
	File string `json:"file"`
	// Line is the sound line, which occurs once in the file, and Replacement the wrong one, both without the white space around.
	Line        string `json:"line"`
	Replacement string `json:"replacement"`
	// What is wrong then, and for whom, says Bug.
	Bug string `json:"bug"`
	// Scenarios are those that must turn red, and Words what the reason of each must say: one that fails because a machine is
	// overloaded, or somebody else works on the testbed, has not noticed the bug.
	Scenarios []string `json:"scenarios"`
	Words     string   `json:"words"`
}

// OfTestbed says that the line is one of the testbed's own: the bug gets into the program that runs the scenarios, and not into
// what ships.
func (m Mutant) OfTestbed() bool { return strings.HasPrefix(m.File, "kind/") }

// Find returns the planted bug of that name; the error lists all.
func Find(name string) (Mutant, error) {
	var names []string
	for _, m := range All() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Mutant{}, fmt.Errorf("there is no planted bug %q; there are %s", name, strings.Join(names, ", "))
}

// Select returns the planted bugs of these names in the order of All; without names all of them.
func Select(names ...string) ([]Mutant, error) {
	if len(names) == 0 {
		return All(), nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		if _, err := Find(name); err != nil {
			return nil, err
		}
		wanted[name] = true
	}
	var selected []Mutant
	for _, m := range All() {
		if wanted[m.Name] {
			selected = append(selected, m)
		}
	}
	return selected, nil
}

// ScenariosOf returns the scenarios that the planted bugs name, each once, in the order in which they are named.
func ScenariosOf(all []Mutant) []string {
	var names []string
	seen := map[string]bool{}
	for _, m := range all {
		for _, name := range m.Scenarios {
			if !seen[name] {
				names = append(names, name)
			}
			seen[name] = true
		}
	}
	return names
}
