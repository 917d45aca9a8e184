package proof

import (
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
)

// PlanMutant is for Up after Plant, and PlanProof for ProveScenarios.
func PlanPlant(name string) ([]string, error) {
	if name == "" {
		return []string{"build what ships from the sources as they are", "bring the testbed to its first state"}, nil
	}
	bug, err := plantable(name)
	if err != nil {
		return nil, err
	}
	return []string{
		"build what ships with one line of " + bug.File + " replaced:", "- " + bug.Line, "+ " + bug.Replacement,
		"bring the testbed to its first state with that",
	}, nil
}

// PlanProof is for ProveScenarios: the runs, as somebody would type them.
func Plan(t *kind.Testbed, bugs []Mutant) []string {
	lines := []string{runOf(ScenariosOf(bugs)) + "  # must be green"}
	for _, bug := range bugs {
		run := runOf(bug.Scenarios) + " MUTANT=" + bug.Name
		if bug.OfTestbed() {
			run = runOf(bug.Scenarios) + "  # built with the bug " + bug.Name + ","
		} else {
			run += "  #"
		}
		lines = append(lines, run+" must be red", "make up")
	}
	return lines
}

func runOf(scenarios []string) string {
	return "make e2e KEEP=1 RUN='^(" + strings.Join(scenarios, "|") + ")$'"
}
