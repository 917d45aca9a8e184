// Package report renders the results of an e2e run: index.html and terminal lines for people,
// junit.xml and summary.json for programs. Its Sampler records CPU and memory usage during the run.
//
// It also records the times that some scenarios measure. Its tests render docs/failover.md and
// docs/registries.md from them.
//
// Rendering is a pure function of a Report. Files are replaced atomically, so they are complete
// even if the run is killed. The package must work without a cluster and for any scenario.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Result is the result of a scenario.
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
	// Evidence contains the facts that prove the result, such as "upstream: 4 blob GETs by cache".
	Evidence []string
	// Steps are the steps that ran, in order.
	Steps []Step
	// Reason is why the scenario failed or was skipped, or empty if the scenario passed.
	Reason string
}

// Step is one claim of a scenario. Seconds is the time to prove or refute the claim.
type Step struct {
	Name    string
	Seconds float64
	Failed  bool
}

// Report contains all results of a run. The zero value is a run that has just started.
type Report struct {
	// Versions are the versions of the tested programs, such as "kubernetes": "v1.36.4".
	Versions map[string]string
	// Phases are the steps that set up and removed the testbed, in the order in which they ended.
	Phases []progress.Phase
	// Scenarios are in the order in which they ended.
	Scenarios []Scenario
	// SetupError is why no scenario could run, for example because the testbed was not created.
	SetupError error
	// Ended is when the run ended; zero while it runs or if it was killed.
	Ended time.Time
	Usage
	// Artifacts maps a scenario to files in its folder that HTML links to. Write finds them itself.
	Artifacts map[string][]string
}

// Green reports whether at least one scenario passed and no scenario, phase or setup failed.
func (r *Report) Green() bool {
	passed, failed, _ := r.Count()
	return r.SetupError == nil && failed == 0 && passed > 0 &&
		!slices.ContainsFunc(r.Phases, func(p progress.Phase) bool { return p.Result == progress.ResultFailed })
}

// SkipUnlessKnown records the scenario as skipped, unless the report already has a result for it.
func (r *Report) SkipUnlessKnown(name, reason string) {
	if !slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return s.Name == name }) {
		r.Scenarios = append(r.Scenarios, Scenario{Name: name, Result: Skipped, Reason: reason})
	}
}

// Count returns how many scenarios passed, failed and were skipped.
func (r *Report) Count() (passed, failed, skipped int) {
	count := map[Result]int{}
	for _, s := range r.Scenarios {
		count[s.Result]++
	}
	return count[Passed], count[Failed], count[Skipped]
}

// PrintScenario writes the line of one scenario. For a failed scenario it adds the folder of the
// artifacts, unless artifacts is empty, and the command that runs the scenario alone.
func PrintScenario(w io.Writer, s Scenario, artifacts string) error {
	details := s.Evidence
	mark := map[Result]string{Passed: "✓", Failed: "✗", Skipped: "-"}[s.Result]
	if s.Result != Passed {
		details = append([]string{firstLine(s.Reason)}, s.Evidence...)
	}
	line := fmt.Sprintf(" %s %s  %.1fs  %s", mark, s.Name, s.Seconds, strings.Join(details, " · "))
	line = strings.TrimRight(line, " ") + "\n"
	if s.Result == Failed && artifacts != "" {
		line += fmt.Sprintf("     artifacts: %s\n", artifacts)
	}
	if s.Result == Failed {
		line += fmt.Sprintf("     run alone: %s\n", Command(s.Name))
	}
	_, err := io.WriteString(w, line)
	return err
}

// PrintTotal writes the closing line: "N passed, N failed, N skipped".
func PrintTotal(w io.Writer, r *Report) error {
	passed, failed, skipped := r.Count()
	_, err := fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return err
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

// summary is the schema of summary.json. Other programs read the file, so never rename a field.
type summary struct {
	Versions         map[string]string `json:"versions"`
	Phases           []progress.Phase  `json:"phases"`
	Scenarios        []summaryScenario `json:"scenarios"`
	PeakMemoryBytes  uint64            `json:"peakMemoryBytes"`
	StartMemoryBytes uint64            `json:"startMemoryBytes"`
	CPUSeconds       float64           `json:"cpuSeconds"`
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
// scenario is its reason. After a failed setup, the reason contains the setup's error.
func (r *Report) Summary() ([]byte, error) {
	out := summary{
		Versions: map[string]string{}, Phases: append([]progress.Phase{}, r.Phases...), Scenarios: []summaryScenario{},
		PeakMemoryBytes: r.PeakMemoryBytes, StartMemoryBytes: r.StartMemoryBytes, CPUSeconds: tenths(r.CPUSeconds),
	}
	maps.Copy(out.Versions, r.Versions)
	for _, s := range r.Scenarios {
		one := summaryScenario{Name: s.Name, Result: s.Result, Seconds: tenths(s.Seconds), Evidence: []string{}, Steps: []summaryStep{}}
		if s.Reason != "" {
			one.Evidence = append(one.Evidence, s.Reason)
		}
		one.Evidence = append(one.Evidence, s.Evidence...)
		for _, step := range s.Steps {
			one.Steps = append(one.Steps, summaryStep{Name: step.Name, Seconds: tenths(step.Seconds)})
		}
		out.Scenarios = append(out.Scenarios, one)
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(out)
	return data.Bytes(), err
}

// The files that Write creates.
const (
	SummaryFile = "summary.json"
	JUnitFile   = "junit.xml"
	HTMLFile    = "index.html"
)

// setup is the name of the folder with the artifacts of a failed setup.
const setup = "setup"

// Files in the folder of a failed scenario: what `testbed export` collects, and its index.
const (
	IndexFile   = "index.md"
	ArchiveFile = "export.tar.gz"
)

// artifactFiles are the files of a scenario's folder that index.html links to.
var artifactFiles = []string{IndexFile, ArchiveFile}

// Write renders the report into dir, with links to artifacts in folders below dir. A missing dir is
// created, and each file is replaced atomically. After an error, the other files are still written.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the folder of the report: %w", err)
	}
	linked := *r
	linked.Artifacts = r.findArtifacts(dir)
	summary, summaryErr := r.Summary()
	junit, junitErr := r.JUnit()
	page, pageErr := linked.HTML()
	return errors.Join(summaryErr, junitErr, pageErr,
		file.Replace(filepath.Join(dir, SummaryFile), summary, 0o644),
		file.Replace(filepath.Join(dir, JUnitFile), junit, 0o644),
		file.Replace(filepath.Join(dir, HTMLFile), page, 0o644),
	)
}

func (r *Report) findArtifacts(dir string) map[string][]string {
	found := map[string][]string{}
	for _, s := range append([]Scenario{{Name: setup}}, r.Scenarios...) {
		for _, name := range artifactFiles {
			if _, err := os.Stat(filepath.Join(dir, s.Name, name)); err == nil {
				found[s.Name] = append(found[s.Name], name)
			}
		}
	}
	return found
}
