// Package fieldbugs is the catalog of the bugs of image pull caches that users reported. Each is
// reproduced by scenarios in e2e, which plant its fault and prove that the expectation holds.
//
// The package must not run anything: the command line of the testbed and the scenarios import it.
package fieldbugs

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Bug is the header of the scenarios that reproduce it.
type Bug struct {
	ID, Title string
	// Scenarios are the names in e2e. With several, each proves a part of the expectation.
	Scenarios []string
	// Reports are issues that describe the bug, as <project>#<number>, see Link.
	Reports []string
	// Symptom is what the reporters saw, Fault what the scenarios plant to cause it, and Expectation
	// what must happen instead. Result is the last measured time that came closest to its bound.
	Symptom, Fault, Expectation, Result string
}

// All returns all bugs in the order of their IDs.
func All() []Bug { return slices.Clone(bugs) }

// Find returns the bugs with the ID ("s22"), or with the name of their scenario.
func Find(name string) ([]Bug, error) {
	found := slices.DeleteFunc(All(), func(b Bug) bool {
		return !strings.EqualFold(b.ID, name) && !slices.Contains(b.Scenarios, name)
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("no field bug %q: `testbed reproduce --list` prints all field bugs", name)
	}
	return found, nil
}

// Of returns the IDs of the bugs that a scenario reproduces.
func Of(scenario string) (ids []string) {
	for _, bug := range All() {
		if slices.Contains(bug.Scenarios, scenario) {
			ids = append(ids, bug.ID)
		}
	}
	return ids
}

// WriteList prints a table of all bugs: ID, scenarios and title.
func WriteList(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSCENARIO\tTITLE")
	for _, bug := range All() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", bug.ID, strings.Join(bug.Scenarios, ", "), bug.Title)
	}
	return table.Flush()
}

// Write prints the header of a bug.
func (b Bug) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s (%s)\n  symptom:  %s\n  planted:  %s\n  expected: %s\n",
		b.ID, b.Title, strings.Join(b.Reports, ", "), b.Symptom, b.Fault, b.Expectation)
	return err
}

var repositories = map[string]string{
	"containerd": "containerd/containerd", "distribution": "distribution/distribution", "distribution-spec": "opencontainers/distribution-spec",
	"gardener": "gardener/gardener", "gardener-extension-registry-cache": "gardener/gardener-extension-registry-cache", "harbor": "goharbor/harbor",
	"k3s": "k3s-io/k3s", "local-path-provisioner": "rancher/local-path-provisioner", "moby": "moby/moby", "quay": "quay/quay", "spegel": "spegel-org/spegel",
}

// Link returns the URL of a report, or an empty string for an unknown project.
func Link(report string) string {
	project, number, _ := strings.Cut(report, "#")
	if repositories[project] == "" || number == "" {
		return ""
	}
	return "https://github.com/" + repositories[project] + "/issues/" + number
}
