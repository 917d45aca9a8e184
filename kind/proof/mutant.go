package proof

import (
	"fmt"
	"slices"
	"strings"
)

// Mutant is one planted bug.
type Mutant struct {
	Name string `json:"name"`
	// File is the path of the source file in the repository.
	File string `json:"file"`
	// Line is the original line, which must be unique in the file. Replacement is the wrong line. Both
	// are without indentation.
	Line        string `json:"line"`
	Replacement string `json:"replacement"`
	// Effect of the wrong line.
	Bug string `json:"bug"`
	// Scenarios must fail, and the Outcome.Reason of each must contain Words: a scenario that fails
	// for another reason, for example on an overloaded machine, has not detected the bug. Words
	// start with the name of the step where the message alone is too general.
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
