package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Result of a scenario.
type Result string

// The results a scenario can have.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped"
)

// Scenario is the outcome of one scenario.
type Scenario struct {
	Name    string
	Result  Result
	Seconds float64
	// Evidence says what the result rests on, one fact each, e.g. "upstream: 4 blob GETs by cache, 0 by nodes".
	Evidence []string
	// Steps that ran, in their order.
	Steps []Step
	// Reason says why the scenario failed or was skipped; empty for a passed one.
	Reason string
}

// Step is one claim of a scenario, and how long it took to prove or refute it.
type Step struct {
	Name    string
	Seconds float64
}

// Report is everything that is known about a run. The zero value is the report of a run that did not get anywhere.
type Report struct {
	// Versions of what was tested, e.g. "kubernetes": "v1.36.2".
	Versions map[string]string
	// Phases are the steps that brought the testbed up and down, in the order in which they ended.
	Phases []progress.Phase
	// Scenarios in the order in which they ran.
	Scenarios []Scenario
	// SetupError says why the scenarios could not run at all, e.g. because the testbed did not come up; nil otherwise.
	SetupError error
	// PeakMemoryBytes is the most memory that the machine used during the run, StartMemoryBytes what it used before. On a
	// machine that does nothing else the difference is what a testbed from nothing needs; a kept one is in both.
	PeakMemoryBytes, StartMemoryBytes uint64
}

// Green tells whether nothing failed: neither the setup nor a phase nor a scenario. A run without a passed scenario is
// not green: it proved nothing.
func (r *Report) Green() bool {
	passed, failed, _ := r.Count()
	if r.SetupError != nil || failed > 0 || passed == 0 {
		return false
	}
	for _, phase := range r.Phases {
		if phase.Result == progress.ResultFailed {
			return false
		}
	}
	return true
}

// SkipUnlessKnown records that the scenario was skipped for the reason, unless the report has its outcome already.
func (r *Report) SkipUnlessKnown(name, reason string) {
	known := slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return s.Name == name })
	if !known {
		r.Scenarios = append(r.Scenarios, Scenario{Name: name, Result: Skipped, Reason: reason})
	}
}

// Count returns how many scenarios passed, failed and were skipped.
func (r *Report) Count() (passed, failed, skipped int) {
	for _, s := range r.Scenarios {
		switch s.Result {
		case Passed:
			passed++
		case Failed:
			failed++
		case Skipped:
			skipped++
		}
	}
	return passed, failed, skipped
}

// PrintScenario writes the line of one scenario, and after a failed one how to run it alone and the folder of its
// artifacts, if it has one.
func PrintScenario(w io.Writer, s Scenario, artifacts string) error {
	_, err := io.WriteString(w, scenarioLines(s, artifacts))
	return err
}

// PrintTotal writes the closing line: "N passed, N failed, N skipped".
func PrintTotal(w io.Writer, r *Report) error {
	passed, failed, skipped := r.Count()
	_, err := fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return err
}

func scenarioLines(s Scenario, artifacts string) string {
	details := s.Evidence
	mark := map[Result]string{Passed: "✓", Failed: "✗", Skipped: "-"}[s.Result]
	if s.Result != Passed {
		details = append([]string{firstLine(s.Reason)}, s.Evidence...)
	}
	line := fmt.Sprintf(" %s %s  %.1fs  %s", mark, s.Name, s.Seconds, strings.Join(details, " · "))
	line = strings.TrimRight(line, " ") + "\n"
	if s.Result == Failed {
		if artifacts != "" {
			line += fmt.Sprintf("     artifacts: %s\n", artifacts)
		}
		line += fmt.Sprintf("     run alone: %s\n", Command(s.Name))
	}
	return line
}

// Command is what runs the named scenario alone and keeps the testbed for a closer look.
func Command(scenario string) string {
	return fmt.Sprintf("make e2e RUN=^%s$ KEEP=1", scenario)
}

func firstLine(text string) string {
	first, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		first += " …"
	}
	return first
}
