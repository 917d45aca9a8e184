package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// reports are the inputs of the goldens, by name.
var reports = map[string]*report.Report{
	"empty": {},
	"setup-failed": {
		Phases:     []progress.Phase{{Name: "docker engine", Seconds: 2.5, Result: progress.ResultFailed}},
		Scenarios:  []report.Scenario{{Name: "pull-through", Result: report.Skipped, Reason: "the testbed did not come up"}},
		SetupError: errors.New("docker engine: not reachable\ninstall docker.io"),
	},
	"full": {
		Versions: map[string]string{"kubernetes": "v1.36.4", "containerd": "2.3.4"},
		Phases: []progress.Phase{
			{Name: "node image", Seconds: 0.3, Result: progress.ResultSkipped},
			{Name: "clusters", Seconds: 41.2, Result: progress.ResultOK},
		},
		Scenarios: []report.Scenario{
			{Name: "pull-through", Result: report.Passed, Seconds: 3.14159,
				Evidence: []string{"upstream: 4 blob GETs by cache, 0 by nodes", "worker 2: 0 blob requests at the upstream"},
				Steps:    []report.Step{{Name: "a pull is served by the cache", Seconds: 2.96}, {Name: "the second one too", Seconds: 0.18}}},
			{Name: "remove-upstream", Result: report.Failed, Seconds: 12.25,
				Reason:   "hosts.toml of alpha is still on worker2 after 30s\n<hosts>",
				Evidence: []string{"cleaner ran on 2 of 2 workers"}},
			{Name: "delete-shoot", Result: report.Skipped, Reason: "not matched by RUN"},
		},
		Usage: report.Usage{PeakMemoryBytes: 5 << 30, StartMemoryBytes: 1 << 30, CPUSeconds: 512.34},
	},
}

func TestGoldens(t *testing.T) {
	for name, r := range reports {
		t.Run(name, func(t *testing.T) {
			summary, err := r.Summary()
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name+".json", summary)
			junit, err := r.JUnit()
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name+".xml", junit)
			golden.Compare(t, name+".txt", lines(t, r))
		})
	}
}

func lines(t *testing.T, r *report.Report) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, s := range r.Scenarios {
		if err := report.PrintScenario(&out, s, filepath.Join("_artifacts", s.Name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := report.PrintTotal(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestGreen(t *testing.T) {
	passed := []report.Scenario{{Result: report.Passed}, {Result: report.Skipped}}
	tests := []struct {
		name   string
		report report.Report
		want   bool
	}{
		{"passed and skipped", report.Report{Scenarios: passed}, true},
		{"nothing ran", report.Report{}, false},
		{"only skipped", report.Report{Scenarios: []report.Scenario{{Result: report.Skipped}}}, false},
		{"one failed", report.Report{Scenarios: append([]report.Scenario{{Result: report.Failed}}, passed...)}, false},
		{"setup failed", report.Report{Scenarios: passed, SetupError: errors.New("no")}, false},
		{"clean-up failed", report.Report{Scenarios: passed, Phases: []progress.Phase{{Result: progress.ResultFailed}}}, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.report.Green(); got != tc.want {
				t.Errorf("Green() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSkipUnlessKnown(t *testing.T) {
	r := &report.Report{Scenarios: []report.Scenario{{Name: "ran", Result: report.Passed}}}
	r.SkipUnlessKnown("ran", "no")
	r.SkipUnlessKnown("did not run", "interrupted")
	want := []report.Scenario{
		{Name: "ran", Result: report.Passed}, {Name: "did not run", Result: report.Skipped, Reason: "interrupted"},
	}
	if !reflect.DeepEqual(r.Scenarios, want) {
		t.Errorf("scenarios are %+v, want %+v", r.Scenarios, want)
	}
}

func TestWriteReplaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "_artifacts")
	for _, r := range []*report.Report{reports["full"], reports["empty"]} {
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	var summary struct {
		Scenarios []any `json:"scenarios"`
	}
	data, err := os.ReadFile(filepath.Join(dir, report.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &summary); err != nil {
		t.Fatal(err)
	}
	if summary.Scenarios == nil || len(summary.Scenarios) != 0 {
		t.Errorf("summary still has the scenarios of the first report: %v", summary.Scenarios)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 3 {
		t.Errorf("%d files in the folder, want the three of the report: %v", len(entries), entries)
	}
}

func TestWriteReportsWhatItCannotWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, report.SummaryFile, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (&report.Report{}).Write(dir); err == nil {
		t.Error("no error for a summary that cannot be replaced")
	}
	for _, other := range []string{report.JUnitFile, report.HTMLFile} {
		if _, err := os.Stat(filepath.Join(dir, other)); err != nil {
			t.Errorf("the other file was not written: %v", err)
		}
	}
}
