package report

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/bench/cache/contender"
	"github.com/gardener-extensions/registry-cache/bench/cache/upstream"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const docs = "../../../docs"

// TestPage checks that docs/benchmarks.md and its plots match the committed results. Run
// `make bench-cache-page` to generate them.
func TestPage(t *testing.T) {
	result, err := Read(filepath.Join(docs, JSON))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(result)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		golden.Compare(t, filepath.Join("..", docs, name), content)
	}
}

func sample() cache.Report {
	result := cache.Result{
		Throughput: 5e8, FirstByte: cache.Latency{P50: 0.001, P99: 0.0025}, LastByte: cache.Latency{P50: 0.5, P99: 1},
		CPUPerGB: 0.123, Peak: 64 << 20, UpstreamRequests: 1, UpstreamBytes: 1e7,
	}
	slow := result
	slow.UpstreamRequests = 3
	rows := []cache.Measured{
		{Row: cache.Row{State: cache.Warm, Size: 10 * cache.MB, Clients: 100}, Results: map[string]cache.Result{
			contender.Ours: slow, contender.Stock: result, contender.Nginx: result, contender.Direct: result}},
	}
	return cache.Report{
		Date: "2026-01-02", Machine: cache.Machine{CPUs: 2, Model: "a CPU", MemoryBytes: 8 << 30, Kernel: "6.1", Go: "go1"},
		Versions: map[string]string{"nginx": "1.22.1", "ours": "abc"}, Rounds: 3, LoadBefore: 0.5, LoadAfter: 2, Rows: rows,
		Faults: []cache.Fault{
			{Name: "the moon is full", Skipped: "needs a moon"},
			{Name: "the upstream cuts", Outcome: map[string][]cache.Answer{
				contender.Ours:  {{Asked: "a blob", Clients: 2, Whole: 2, Seconds: 0.25, Upstream: &upstream.Traffic{Requests: 4, Bytes: 3e7}}},
				contender.Stock: {{Asked: "a blob", Clients: 2, Whole: 1, Seconds: 1.5, Failure: "cut\nafter all"}},
			}},
		},
		Goals: cache.Judge(rows, 0),
	}
}

func TestMarkdown(t *testing.T) { golden.Compare(t, "sample.md", Markdown(sample())) }

// TestFiles: Read returns what Write wrote, and the page links to each plot.
func TestFiles(t *testing.T) {
	folder := t.TempDir()
	if err := Write(folder, sample()); err != nil {
		t.Fatal(err)
	}
	result, err := Read(filepath.Join(folder, JSON))
	if err != nil || Markdown(result) != Markdown(sample()) {
		t.Errorf("error %v, read:\n%s", err, Markdown(result))
	}
	page, err := os.ReadFile(filepath.Join(folder, Page))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plots {
		if !strings.Contains(string(page), "(images/"+p.file+")") {
			t.Errorf("the page does not show %s", p.file)
		}
		svg, err := os.ReadFile(filepath.Join(folder, "images", p.file))
		if err != nil || !strings.Contains(string(svg), p.title) {
			t.Errorf("%s has no title, error %v", p.file, err)
		}
	}
}

// TestPlotShowsValues: another value gives another plot, and a row of another state does not.
func TestPlotShowsValues(t *testing.T) {
	draw := func(p barPlot, rows []cache.Measured) string {
		t.Helper()
		svg, err := p.draw(rows)
		if err != nil {
			t.Fatal(err)
		}
		return string(svg)
	}
	row := sample().Rows[0]
	faster, cold := row, row
	faster.Results = maps.Clone(row.Results)
	faster.Results[contender.Nginx] = cache.Result{Throughput: 1e9}
	cold.State = cache.Cold
	warm := draw(plots[0], []cache.Measured{row})
	if warm == draw(plots[0], []cache.Measured{faster}) {
		t.Error("the plot does not depend on the value")
	}
	if warm != draw(plots[0], []cache.Measured{row, cold}) {
		t.Error("the plot of warm rows shows a cold one")
	}
}

func TestReadRefuses(t *testing.T) {
	folder := t.TempDir()
	empty, err := json.Marshal(cache.Report{})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"text.json": "x", "empty.json": string(empty)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"text.json", "empty.json", "missing.json"} {
		if _, err := Read(filepath.Join(folder, name)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
