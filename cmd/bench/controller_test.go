package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench/extension"
)

func TestReadRuns(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, content any) string {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	small := write("small.json", extension.Report{Runs: []extension.Run{{Shoots: 10}, {Shoots: 100}}})
	big := write("big.json", extension.Report{Runs: []extension.Run{{Shoots: 1000}}})
	runs, err := readRuns([]string{small, big})
	if err != nil || len(runs) != 3 || runs[0].Shoots != 10 || runs[2].Shoots != 1000 {
		t.Errorf("runs = %+v, error %v", runs, err)
	}
	for name, path := range map[string]string{
		"missing": filepath.Join(folder, "none.json"), "other": write("other.json", map[string]int{"a": 1}), "text": write("text.json", "x"),
	} {
		if _, err := readRuns([]string{path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}
