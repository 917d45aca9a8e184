package report

import (
	"bytes"
	"encoding/json"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// summary is the schema of summary.json. Programs read it: add fields, but never rename one.
type summary struct {
	Versions         map[string]string `json:"versions"`
	Phases           []progress.Phase  `json:"phases"`
	Scenarios        []summaryScenario `json:"scenarios"`
	PeakMemoryBytes  uint64            `json:"peakMemoryBytes"`
	StartMemoryBytes uint64            `json:"startMemoryBytes"`
}

type summaryScenario struct {
	Name     string        `json:"name"`
	Result   Result        `json:"result"`
	Seconds  float64       `json:"seconds"`
	Evidence []string      `json:"evidence"`
	Steps    []summaryStep `json:"steps"`
}

type summaryStep struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Summary renders summary.json. Lists are never null. The first evidence of a failed or skipped
// scenario is its reason, so a failed setup shows up in each scenario that could not run.
func (r *Report) Summary() ([]byte, error) {
	out := summary{
		Versions:        r.Versions,
		Phases:          append([]progress.Phase{}, r.Phases...),
		Scenarios:       []summaryScenario{},
		PeakMemoryBytes: r.PeakMemoryBytes, StartMemoryBytes: r.StartMemoryBytes,
	}
	if out.Versions == nil {
		out.Versions = map[string]string{}
	}
	for _, s := range r.Scenarios {
		evidence := []string{}
		if s.Reason != "" {
			evidence = append(evidence, s.Reason)
		}
		out.Scenarios = append(out.Scenarios, summaryScenario{
			Name: s.Name, Result: s.Result, Seconds: tenths(s.Seconds), Evidence: append(evidence, s.Evidence...),
			Steps: summarySteps(s.Steps),
		})
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(out)
	return data.Bytes(), err
}

func summarySteps(steps []Step) []summaryStep {
	out := []summaryStep{}
	for _, step := range steps {
		out = append(out, summaryStep{Name: step.Name, Seconds: tenths(step.Seconds)})
	}
	return out
}
