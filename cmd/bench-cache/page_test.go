package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/bench/cache/contender"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const docs = "../../docs"

// TestPage checks that docs/benchmarks.md matches the committed results. `make bench-cache-page`
// generates it.
func TestPage(t *testing.T) {
	result, err := read(filepath.Join(docs, jsonFile))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("..", docs, pageFile), introduction+markdown(result))
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
				contender.Ours:  {{Asked: "a blob", Clients: 2, Whole: 2, Seconds: 0.25, Upstream: &cache.Traffic{Requests: 4, Bytes: 3e7}}},
				contender.Stock: {{Asked: "a blob", Clients: 2, Whole: 1, Seconds: 1.5, Failure: "cut\nafter all"}},
			}},
		},
		Goals: cache.Judge(rows, 0),
	}
}

func TestMarkdown(t *testing.T) { golden.Compare(t, "sample.md", markdown(sample())) }

// TestFiles: read returns what write wrote.
func TestFiles(t *testing.T) {
	folder := t.TempDir()
	if err := write(folder, sample()); err != nil {
		t.Fatal(err)
	}
	result, err := read(filepath.Join(folder, jsonFile))
	if err != nil || markdown(result) != markdown(sample()) {
		t.Errorf("error %v, read:\n%s", err, markdown(result))
	}
	page, err := os.ReadFile(filepath.Join(folder, pageFile))
	if err != nil || !strings.HasSuffix(string(page), markdown(sample())) {
		t.Errorf("error %v, page:\n%s", err, page)
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
		if _, err := read(filepath.Join(folder, name)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
