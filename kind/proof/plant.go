package proof

import (
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
)

// Plant lets bringup.Up build the images of t with the planted bug of that name, or without one for
// "". It returns an error for an unknown bug, and for one of the testbed itself, which has no image.
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

// PlanPlant returns what bringup.Up does after Plant with that name, one line a step.
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

// plantable returns the planted bug of that name, unless it is a bug of the testbed itself.
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
		run := runCommand(bug.Scenarios) + " MUTANT=" + bug.Name
		if bug.OfTestbed() {
			run = runCommand(bug.Scenarios) + "  # built with the bug " + bug.Name + ","
		} else {
			run += "  #"
		}
		lines = append(lines, run+" must fail", "make up")
	}
	return lines
}

func runCommand(scenarios []string) string {
	return "make e2e KEEP=1 RUN='^(" + strings.Join(scenarios, "|") + ")$'"
}
