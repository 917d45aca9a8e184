package plantedbugs

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Outcome is the result of one scenario in summary.json.
type Outcome struct {
	Name     string   `json:"name"`
	Result   string   `json:"result"`
	Seconds  float64  `json:"seconds"`
	Evidence []string `json:"evidence"`
}

// Results of a scenario in summary.json.
const passed, failed = "passed", "failed"

// ParseOutcomes parses the scenarios of a summary.json.
func ParseOutcomes(summary []byte) ([]Outcome, error) {
	var read struct {
		Scenarios []Outcome `json:"scenarios"`
	}
	if err := json.Unmarshal(summary, &read); err != nil {
		return nil, fmt.Errorf("parse results of scenarios: %w", err)
	}
	return read.Scenarios, nil
}

// Reason returns the step and its error. go test replaces spaces in the name of the step by
// underscores; Reason restores them.
func (o Outcome) Reason() string {
	if len(o.Evidence) == 0 {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(o.Evidence[0]), "\n")
	step, reason, found := strings.Cut(line, ": ")
	if !found {
		return line
	}
	return strings.ReplaceAll(step, "_", " ") + ": " + reason
}

// Finding is the result of a run with one planted bug.
type Finding struct {
	Mutant
	Caught  bool    `json:"caught"`            // every scenario failed for the expected reason
	By      []Catch `json:"by"`                // the scenarios that failed for the expected reason
	Problem string  `json:"problem,omitempty"` // why the other scenarios did not catch it
	Seconds float64 `json:"seconds"`           // of the run, with build and rollout
}

// Catch is a scenario that failed for the expected reason.
type Catch struct {
	Scenario string  `json:"scenario"`
	Reason   string  `json:"words"` // Outcome.Reason
	Seconds  float64 `json:"seconds"`
}

// Judge compares the outcomes of a run with a planted bug to the failures that the bug must cause.
func Judge(m Mutant, outcomes []Outcome) Finding {
	f := Finding{Mutant: m, By: []Catch{}}
	var problems []string
	for _, name := range m.Scenarios {
		i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Name == name })
		switch {
		case i < 0:
			problems = append(problems, name+" is not a scenario")
		case outcomes[i].Result == failed && !strings.Contains(outcomes[i].Reason(), m.Words):
			problems = append(problems, fmt.Sprintf("%s failed for another reason: %s", name, outcomes[i].Reason()))
		case outcomes[i].Result == failed:
			f.By = append(f.By, Catch{Scenario: name, Reason: outcomes[i].Reason(), Seconds: outcomes[i].Seconds})
		case outcomes[i].Result == passed:
			problems = append(problems, name+" passed")
		default:
			problems = append(problems, fmt.Sprintf("%s did not run: %s", name, outcomes[i].Reason()))
		}
	}
	f.Problem = strings.Join(problems, "; ")
	f.Caught = len(problems) == 0
	return f
}

// checkPassed returns an error unless all scenarios passed without a planted bug.
func checkPassed(scenarios []string, outcomes []Outcome) error {
	var problems []string
	for _, name := range scenarios {
		i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Name == name })
		if i < 0 {
			problems = append(problems, name+" is not a scenario")
		} else if outcomes[i].Result != passed {
			problems = append(problems, fmt.Sprintf("%s %s: %s", name, outcomes[i].Result, outcomes[i].Reason()))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("scenarios fail without a planted bug, so their failures prove nothing: %s", strings.Join(problems, "; "))
	}
	return nil
}

// maxReason limits a cell of the table, in runes.
const maxReason = 140

// Report has the results of several planted bugs.
type Report struct {
	Findings []Finding `json:"findings"`
	Seconds  float64   `json:"seconds"` // in total
}

// Err returns an error that names the planted bugs that were not caught, or nil.
func (r *Report) Err() error {
	var missed []string
	for _, f := range r.Findings {
		if !f.Caught {
			missed = append(missed, f.Name)
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d planted bugs were not caught: %s", len(missed), len(r.Findings), strings.Join(missed, ", "))
}

// Write prints a table of the bugs, the scenarios that caught them, and why each scenario failed.
func (r *Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  PLANTED BUG\tCAUGHT BY\tAFTER\tREASON")
	caught := 0
	for _, f := range r.Findings {
		mark, name := "✗", f.Name
		if f.Caught {
			mark = "✓"
			caught++
		}
		for _, catch := range f.By {
			fmt.Fprintf(table, "%s %s\t%s\t%.0fs\t%s\n", mark, name, catch.Scenario, catch.Seconds, shorten(catch.Reason))
			mark, name = " ", ""
		}
		if f.Problem != "" {
			fmt.Fprintf(table, "%s %s\t-\t\t%s\n", mark, name, shorten(f.Problem))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d planted bugs caught, in %.0f s\n", caught, len(r.Findings), r.Seconds)
	return err
}

// WriteList prints a table of the planted bugs.
func WriteList(w io.Writer, all []Mutant) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PLANTED BUG\tFILE\tMUST FAIL\tEFFECT")
	for _, m := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Name, m.File, strings.Join(m.Scenarios, ", "), m.Bug)
	}
	return table.Flush()
}

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxReason {
		return text
	}
	return string(runes[:maxReason-1]) + "…"
}
