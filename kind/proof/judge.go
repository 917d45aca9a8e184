package proof

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Outcome is one scenario of a run, as summary.json has it.
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

// ParseOutcomes reads the scenarios of a summary.json.
func ParseOutcomes(summary []byte) ([]Outcome, error) {
	var read struct {
		Scenarios []Outcome `json:"scenarios"`
	}
	if err := json.Unmarshal(summary, &read); err != nil {
		return nil, fmt.Errorf("results of the scenarios: %w", err)
	}
	return read.Scenarios, nil
}

// Words are the first ones that a scenario says about why it failed or did not run. The claim comes first, in which a test has
// an underscore for each space.
func (o Outcome) Words() string {
	if len(o.Evidence) == 0 {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(o.Evidence[0]), "\n")
	claim, rest, found := strings.Cut(line, ": ")
	if !found {
		return line
	}
	return strings.ReplaceAll(claim, "_", " ") + ": " + rest
}

// Finding is what the scenarios said about one planted bug.
type Finding struct {
	Mutant
	// Caught says that every scenario that the bug names turned red, for the reason that it names.
	Caught bool `json:"caught"`
	// By are the scenarios that turned red.
	By []Catch `json:"by"`
	// Problem says what did not go as it must: scenarios that stayed green, failed for another reason, or did not run.
	Problem string `json:"problem,omitempty"`
	// Seconds is how long the run took, with the build and the roll-out.
	Seconds float64 `json:"seconds"`
}

// Catch is a scenario that turned red.
type Catch struct {
	Scenario string `json:"scenario"`
	// Words are those of the first claim that did not hold.
	Words   string  `json:"words"`
	Seconds float64 `json:"seconds"`
}

// Judge compares what a run with the planted bug showed with what it had to show.
func Judge(m Mutant, outcomes []Outcome) Finding {
	f := Finding{Mutant: m, By: []Catch{}}
	var problems []string
	for _, name := range m.Scenarios {
		i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Name == name })
		switch {
		case i < 0:
			problems = append(problems, name+" is no scenario")
		case outcomes[i].Result == failed && !strings.Contains(outcomes[i].Words(), m.Words):
			problems = append(problems, fmt.Sprintf("%s turned red for another reason: %s", name, outcomes[i].Words()))
		case outcomes[i].Result == failed:
			f.By = append(f.By, Catch{Scenario: name, Words: outcomes[i].Words(), Seconds: outcomes[i].Seconds})
		case outcomes[i].Result == passed:
			problems = append(problems, name+" stayed green")
		default:
			problems = append(problems, fmt.Sprintf("%s did not run: %s", name, outcomes[i].Words()))
		}
	}
	f.Problem = strings.Join(problems, "; ")
	f.Caught = len(problems) == 0
	return f
}

// Sound returns nil if all of the scenarios passed without any planted bug: only then does a red one prove something.
func Sound(scenarios []string, outcomes []Outcome) error {
	var problems []string
	for _, name := range scenarios {
		i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Name == name })
		if i < 0 {
			problems = append(problems, name+" is no scenario")
		} else if outcomes[i].Result != passed {
			problems = append(problems, fmt.Sprintf("%s %s: %s", name, outcomes[i].Result, outcomes[i].Words()))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("without any planted bug, so that a red scenario would prove nothing: %s", strings.Join(problems, "; "))
	}
	return nil
}
