package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Result of a scenario.
type Result string

// The results of a scenario.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped"
)

// Scenario is the outcome of one scenario.
type Scenario struct {
	Name    string
	Result  Result
	Started time.Time // zero if it did not run
	Seconds float64
	// Evidence holds the facts that the result rests on, such as "upstream: 4 blob GETs by cache".
	Evidence []string
	// Steps are the steps that ran, in order.
	Steps []Step
	// Reason is why the scenario failed or was skipped; empty for one that passed.
	Reason string
}

// Step is one claim of a scenario. Seconds is the time it took to prove or refute it.
type Step struct {
	Name    string
	Seconds float64
	Failed  bool
}

// Report is everything that is known about a run. The zero value is the report of a run that did
// nothing yet.
type Report struct {
	// Versions of what was tested, such as "kubernetes": "v1.36.2".
	Versions map[string]string
	// Phases are the steps that set up and removed the testbed, in the order in which they ended.
	Phases []progress.Phase
	// Scenarios are in the order in which they ended.
	Scenarios []Scenario
	// SetupError is why no scenario could run, such as a testbed that did not come up; nil otherwise.
	SetupError error
	// Ended is when the run ended; zero while it goes on, and for a run that was killed.
	Ended time.Time
	Usage
	// Artifacts are the files to link to, by scenario, relative to the scenario's folder. Write finds
	// them.
	Artifacts map[string][]string
}

// Green reports whether at least one scenario passed and nothing failed: not the setup, not a
// phase, not a scenario.
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

// SkipUnlessKnown records the scenario as skipped for the reason, unless the report has its
// outcome.
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

// PrintScenario writes the line of one scenario. For a failed one it adds the folder of its
// artifacts, unless that is empty, and the command that runs it alone.
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

// Command returns the command line that runs the scenario alone and keeps the testbed.
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
