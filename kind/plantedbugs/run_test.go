package plantedbugs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
)

// TestRunScenarios checks that runScenarios distinguishes runs with results from runs that could
// not start, and neither uses nor removes the results of an earlier run.
func TestRunScenarios(t *testing.T) {
	const (
		earlier  = `{"scenarios":[{"name":"earlier"}]}`
		writeNew = `mkdir -p _artifacts; echo '{"scenarios":[{"name":"join"}]}' >_artifacts/new; mv _artifacts/new _artifacts/summary.json; `
	)
	for _, tc := range []struct {
		name, script string
		found        string // the name of the scenario
		environment  bool
		want         string // in the error
	}{
		{"passed", writeNew + "exit 0", "join", false, ""},
		{"failed", writeNew + "exit 1", "join", false, ""},
		{"no results", "exit 1", "", false, "wrote no results; see "},
		{"usage error", "exit 2", "", false, "bug.log): exit status 2"},
		{
			"environment error", "echo 'e2e: testbed one: make e2e works on it' >&2; echo '0 passed, 1 failed'; exit 3", "",
			true, "bug.log): testbed one: make e2e works on it",
		},
		{"environment error without a reason", "echo 'the last line'; exit 3", "", true, "bug.log): the last line"},
		{"environment error without output", "exit 3", "", true, "bug.log): exit status 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			testbed, err := kind.New(kind.Options{Root: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			summary := filepath.Join(testbed.Root, "_artifacts", "summary.json")
			writeAll(t, map[string]string{
				summary: earlier, filepath.Join(testbed.State.Mutants(), "there"): "",
				filepath.Join(testbed.Root, "run"): "#!/bin/sh\n" + tc.script + "\n",
			})
			outcomes, err := runScenarios(t.Context(), testbed, time.Minute, filepath.Join(testbed.Root, "run"), Mutant{Name: "bug"}, "")
			var marked interface{ EnvironmentError() }
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) ||
				errors.As(err, &marked) != tc.environment {
				t.Errorf("error %v, want %q, environment error: %t", err, tc.want, tc.environment)
			}
			if tc.found != "" && (len(outcomes) != 1 || outcomes[0].Name != tc.found) {
				t.Errorf("outcomes %+v, want %s", outcomes, tc.found)
			}
			if kept, err := os.ReadFile(summary); tc.found == "" && (err != nil || string(kept) != earlier) {
				t.Errorf("results of the earlier run: %q, %v", kept, err)
			}
		})
	}
}

// TestRunTimeouts checks that a run is bounded, and that the first run has time to create the
// testbed.
func TestRunTimeouts(t *testing.T) {
	if left := firstRunTimeout - bringup.UpTimeout; left < runTimeout {
		t.Errorf("scenarios have %s after the testbed was created, want %s", left, runTimeout)
	}
	testbed, err := kind.New(kind.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(testbed.Root, "run")
	writeAll(t, map[string]string{program: "#!/bin/sh\nexit 0\n", filepath.Join(testbed.State.Mutants(), "there"): ""})
	_, err = runScenarios(t.Context(), testbed, time.Nanosecond, program, Mutant{Name: "bug"}, "")
	if err == nil || err.Error() != "the scenarios did not end after 1ns" {
		t.Errorf("error %v", err)
	}
}

// writeAll writes executable files, and creates their folders.
func writeAll(t *testing.T, files map[string]string) {
	t.Helper()
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
