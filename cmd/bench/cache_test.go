package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/internal/program"
)

// written writes a result in which the cache is as good as nginx, or slower.
func written(t *testing.T, throughput float64) string {
	t.Helper()
	results := map[string]cache.Result{}
	for _, name := range cache.Contenders {
		results[name] = cache.Result{Throughput: 100}
	}
	results[cache.Ours] = cache.Result{Throughput: throughput}
	row := cache.Row{State: cache.Warm, Size: cache.MB, Clients: 1, Blobs: 1}
	content, err := json.Marshal(cache.Report{Rows: []cache.Measured{{Row: row, Results: results}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFrom(t *testing.T) {
	good, slow := written(t, 100), written(t, 50)
	tests := []struct {
		name     string
		args     []string
		code     int
		out, err string // parts
	}{
		{"Markdown", []string{"--from", good}, program.ExitFine, "| warm 1 MB | 0/0/0/0 |", ""},
		{"JSON", []string{"--from", good, "--json"}, program.ExitFine, `"blobBytes": 1000000`, ""},
		{"a missed goal", []string{"--from", slow}, program.ExitFine, "✗ missed", ""},
		{"a missed goal, strict", []string{"--from", slow, "--strict"}, program.ExitFailed, "✗ missed", "missed goal: warm: throughput"},
		{"held, strict", []string{"--from", good, "--strict"}, program.ExitFine, "✓ held", ""},
		{"no file", []string{"--from", "none.json"}, program.ExitUsage, "", "none.json"},
		{"two sources", []string{"--from", good, "--quick"}, program.ExitUsage, "", "[from quick]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out, messages bytes.Buffer
			streams := program.Streams{Out: &out, Err: &messages}
			code := program.Run(t.Context(), newCommand(streams), streams, append([]string{"cache"}, test.args...))
			if code != test.code || !strings.Contains(out.String(), test.out) || !strings.Contains(messages.String(), test.err) {
				t.Errorf("exit code %d, standard error %q, standard output:\n%s", code, &messages, &out)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	var out, messages bytes.Buffer
	streams := program.Streams{Out: &out, Err: &messages}
	if code := program.Run(t.Context(), newCommand(streams), streams, []string{"cache", "--from", written(t, 100), "--write", folder}); code != program.ExitFine {
		t.Fatalf("exit code %d: %s", code, &messages)
	}
	for _, name := range []string{"benchmarks.md", "benchmarks/cache.json"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
