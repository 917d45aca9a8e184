package proof

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Outcome is the result of one scenario in summary.json.
type Outcome struct {
	Name     string   `json:"name"`
	Result   string   `json:"result"`
	Seconds  float64  `json:"seconds"`
	Evidence []string `json:"evidence"`
}

// Results of a scenario in summary.json.
const (
	passed = "passed"
	failed = "failed"
)

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

// Reason returns the first line of the evidence of a failure: the step and its error. go test
// writes names with underscores for spaces; Reason restores the spaces in the step.
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
	// Caught means that every scenario of the bug failed for the expected reason.
	Caught bool `json:"caught"`
	// By are the scenarios that failed for the expected reason.
	By []Catch `json:"by"`
	// Problem lists scenarios that passed, failed for another reason, or did not run.
	Problem string `json:"problem,omitempty"`
	// Seconds is the duration of the run, with build and rollout.
	Seconds float64 `json:"seconds"`
}

// Catch is a scenario that failed.
type Catch struct {
	Scenario string `json:"scenario"`
	// Reason is Outcome.Reason.
	Reason  string  `json:"words"`
	Seconds float64 `json:"seconds"`
}

// Judge compares the outcomes of a run with the planted bug with those that the bug must cause.
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

// checkPassed returns an error unless all of these scenarios passed. It is for the run without a
// planted bug: a scenario that fails there proves nothing by failing with a bug.
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
