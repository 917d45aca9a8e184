package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

var start = time.Date(2026, 11, 22, 14, 3, 7, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// green returns the report of a small run in which everything passed.
func green() *report.Report {
	return &report.Report{
		Versions: map[string]string{"kubernetes": "v1.36.4"},
		Phases: []progress.Phase{
			{Name: "node image", Started: at(0), Result: progress.ResultSkipped, Detail: "present"},
			{Name: "shoot cluster", Seconds: 40, Started: at(0), Result: progress.ResultOK},
			{Name: "seed cluster", Seconds: 60, Started: at(0), Result: progress.ResultOK},
		},
		Scenarios: []report.Scenario{
			{Name: "pull-through", Result: report.Passed, Started: at(60), Seconds: 30, Evidence: []string{"upstream: 4 blob GETs by cache"},
				Steps: []report.Step{{Name: "alpha is cached", Seconds: 20}, {Name: "the second pull is a hit", Seconds: 10}}},
			{Name: "admission", Result: report.Passed, Started: at(60), Seconds: 20, Evidence: []string{"5 mistakes: refused"}},
			{Name: "s5", Result: report.Passed, Started: at(90), Seconds: 10, Evidence: []string{"s5 held"},
				Steps: []report.Step{{Name: "A damaged image is repaired", Seconds: 10}}},
			{Name: "join", Result: report.Skipped, Reason: "not matched by RUN"},
		},
		Ended: at(100),
		Usage: report.Usage{StartMemoryBytes: 1 << 30, PeakMemoryBytes: 3 << 30, CPUSeconds: 75},
	}
}

// red returns the report in testdata/run.json, a run of usual size in which one scenario failed.
func red(t *testing.T) *report.Report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run struct {
		report.Report
		Phases []struct { // summary.json contains fewer fields of a phase
			Name    string
			Seconds float64
			Result  string
			Started time.Time
			Detail  string
		}
	}
	if err := json.Unmarshal(data, &run); err != nil {
		t.Fatal(err)
	}
	for _, phase := range run.Phases {
		run.Report.Phases = append(run.Report.Phases, progress.Phase(phase))
	}
	run.Artifacts = map[string][]string{"lost-volume": {"index.md", "export.tar.gz"}}
	return &run.Report
}

func html(t *testing.T, r *report.Report) string {
	t.Helper()
	text, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHTMLGoldens(t *testing.T) {
	golden.Compare(t, "green.html", html(t, green()))
	golden.Compare(t, "red.html", html(t, red(t)))
}

func TestHTML(t *testing.T) {
	failed := report.Scenario{Name: "remove-upstream", Result: report.Failed, Started: at(100), Seconds: 5, Reason: "hosts.toml is\n<b>still</b> there"}
	change := func(change func(r *report.Report)) *report.Report {
		r := green()
		change(r)
		return r
	}
	tests := []struct {
		name          string
		report        *report.Report
		want, without []string
	}{
		{"nothing happened yet", &report.Report{}, []string{">Not finished<"}, []string{`class="card`}},
		{"a run goes on", change(func(r *report.Report) { r.Ended = time.Time{} }), []string{">Not finished<"}, nil},
		{"a run ended without a scenario", &report.Report{Ended: at(1)}, []string{">Failed<"}, nil},
		{"a failure shows before the end", change(func(r *report.Report) { r.Ended, r.Scenarios = time.Time{}, append(r.Scenarios, failed) }),
			[]string{">Failed<", `<details class="failed" open>`, "make e2e RUN=^remove-upstream$ KEEP=1"}, nil},
		{"text is escaped", &report.Report{Scenarios: []report.Scenario{failed}, SetupError: errors.New("<script>")},
			[]string{"&lt;b&gt;still", "&lt;script&gt;"}, []string{"<b>still", "<script"}},
		{"setup failed", change(func(r *report.Report) {
			r.SetupError = errors.New("no engine")
			r.Artifacts = map[string][]string{"setup": {"index.md"}}
		}), []string{">Failed<", "no engine", `href="setup/index.md"`}, nil},
		{"a phase failed", change(func(r *report.Report) {
			r.Phases = append(r.Phases, progress.Phase{Name: "down", Result: progress.ResultFailed, Detail: "no space left"})
		}), []string{">Failed<", `class="row failed"`, "no space left"}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			text := html(t, tc.report)
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			for _, without := range tc.without {
				if strings.Contains(text, without) {
					t.Errorf("%q in\n%s", without, text)
				}
			}
		})
	}
}

// TestHTMLOfALongRun renders about as many scenarios as the full lane has. The scenarios run one
// after another, so all are in one track.
func TestHTMLOfALongRun(t *testing.T) {
	r := &report.Report{Ended: at(64 * 60)}
	for i := range 64 {
		r.Scenarios = append(r.Scenarios, report.Scenario{
			Name: fmt.Sprintf("s%d", i), Result: report.Passed, Started: at(float64(i) * 60), Seconds: 60,
		})
	}
	text := html(t, r)
	if n := strings.Count(text, "<details"); n != 64 {
		t.Errorf("%d scenarios, want 64", n)
	}
	if n := strings.Count(text, `<div class="lane">`); n != 1 {
		t.Errorf("%d tracks, want one", n)
	}
	if !strings.Contains(text, ">60 min<") {
		t.Error("no tick at 60 min")
	}
}

func TestWriteLinksArtifacts(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"setup/index.md", "pull-through/index.md", "pull-through/export.tar.gz"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := green()
	r.SetupError = errors.New("no engine")
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, report.HTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`href="setup/index.md"`, `href="pull-through/index.md"`, `href="pull-through/export.tar.gz"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("index.html has no %s", want)
		}
	}
	if strings.Contains(string(text), `href="admission/`) {
		t.Error("index.html links to artifacts that do not exist")
	}
}
