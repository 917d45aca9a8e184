// Package fieldbugs is the catalog of the bugs of image pull caches that users reported. Each is
// reproduced by scenarios in e2e, which plant its fault and prove that the expectation holds.
//
// The package must not run anything: the command line of the testbed and the scenarios import it.
package fieldbugs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Bug describes a bug that users reported, and names the scenarios that reproduce it.
type Bug struct {
	ID, Title string
	// Scenarios are names of scenarios in e2e. Each proves a part of the expectation.
	Scenarios []string
	// Reports are issues that describe the bug, as <project>#<number>.
	Reports []string
	// Symptom is what the reporters saw, Fault is what the scenarios plant, and Expectation is what
	// must happen instead. Result is the measured time that came closest to its bound, or "held".
	Symptom, Fault, Expectation, Result string
}

// All returns all bugs in the order of their IDs.
func All() []Bug { return slices.Clone(bugs) }

// Find returns the bug with this ID, such as "s22", or the bugs of the scenario with this name.
func Find(name string) ([]Bug, error) {
	found := slices.DeleteFunc(All(), func(b Bug) bool {
		return !strings.EqualFold(b.ID, name) && !slices.Contains(b.Scenarios, name)
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("no field bug %q: `testbed reproduce --list` prints all field bugs", name)
	}
	return found, nil
}

// WithBugs extends the expression: the result also matches the scenarios of each bug whose whole ID
// the expression matches.
func WithBugs(expression *regexp.Regexp) string {
	all, ids := expression.String(), regexp.MustCompile("^(?:"+expression.String()+")$")
	for _, bug := range All() {
		if ids.MatchString(bug.ID) {
			all += "|^(" + strings.Join(bug.Scenarios, "|") + ")$"
		}
	}
	return all
}

// Held returns lines such as "s2, s3 held" for the bugs of a scenario that has passed. A bug with
// other scenarios is only "held in part" unless passed returns true for each of them.
func Held(scenario string, passed func(scenario string) bool) (lines []string) {
	var whole, part []string
	for _, bug := range All() {
		switch missing := func(other string) bool { return other != scenario && !passed(other) }; {
		case !slices.Contains(bug.Scenarios, scenario):
		case slices.ContainsFunc(bug.Scenarios, missing):
			part = append(part, bug.ID)
		default:
			whole = append(whole, bug.ID)
		}
	}
	if len(part) > 0 {
		lines = append(lines, strings.Join(part, ", ")+" held in part")
	}
	if len(whole) > 0 {
		lines = append(lines, strings.Join(whole, ", ")+" held")
	}
	return lines
}
