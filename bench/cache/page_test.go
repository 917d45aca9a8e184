package cache

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const docs = "../../docs"

// TestPage checks that docs/benchmarks.md matches the committed results. `make bench-cache-page`
// generates it.
func TestPage(t *testing.T) {
	result, err := Read(filepath.Join(docs, jsonFile))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("..", docs, PageFile), result.render("page"))
}

func sample() Report {
	result := Result{
		Throughput: 5e8, FirstByte: Latency{P50: 0.001, P99: 0.0025}, LastByte: Latency{P50: 0.5, P99: 1},
		CPUPerGB: 0.123, Peak: 64 << 20, UpstreamRequests: 1, UpstreamBytes: 1e7,
	}
	slow := result
	slow.UpstreamRequests = 3
	rows := []Measured{
		{Row: Row{State: Warm, Size: 10 * MB, Clients: 100}, Results: map[string]Result{
			Ours: slow, Stock: result, Nginx: result, Direct: result}},
	}
	return Report{
		Date: "2026-01-02", Machine: Machine{Machine: bench.Machine{CPUs: 2, Model: "a CPU", MemoryBytes: 8 << 30, Kernel: "6.1", Go: "go1"}},
		Versions: map[string]string{"nginx": "1.22.1", "ours": "abc"}, Rounds: 3, LoadBefore: 0.5, LoadAfter: 2, Rows: rows,
		Faults: []Fault{
			{Name: "the moon is full", Skipped: "needs a moon"},
			{Name: "the upstream cuts", Outcome: map[string][]Answer{
				Ours:  {{Asked: "a blob", Clients: 2, Whole: 2, Seconds: 0.25, Upstream: &Traffic{Requests: 4, Bytes: 3e7}}},
				Stock: {{Asked: "a blob", Clients: 2, Whole: 1, Seconds: 1.5, Failure: "cut\nafter all"}},
			}},
		},
		Goals: Judge(rows, 0),
	}
}

func TestMarkdown(t *testing.T) { golden.Compare(t, "sample.md", sample().Markdown()) }

// TestFiles: read returns what write wrote.
func TestFiles(t *testing.T) {
	folder := t.TempDir()
	if err := sample().Write(folder); err != nil {
		t.Fatal(err)
	}
	result, err := Read(filepath.Join(folder, jsonFile))
	if err != nil || result.Markdown() != sample().Markdown() {
		t.Errorf("error %v, read:\n%s", err, result.Markdown())
	}
	page, err := os.ReadFile(filepath.Join(folder, PageFile))
	if err != nil || !strings.HasSuffix(string(page), sample().Markdown()) {
		t.Errorf("error %v, page:\n%s", err, page)
	}
}

func TestReadRefuses(t *testing.T) {
	folder := t.TempDir()
	empty, err := json.Marshal(Report{})
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
