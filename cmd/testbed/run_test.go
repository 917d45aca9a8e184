package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

func TestWrongUse(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "name a command"},
		{"unknown command", []string{"destroy"}, `unexpected argument "destroy"`},
		{"stray argument", []string{"up", "now"}, `unexpected argument "now"`},
		{"unknown flag", []string{"down", "--force"}, "unknown flag"},
		{"bad prefix", []string{"up", "--prefix", "No_Prefix"}, "prefix"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			if code := run(t.Context(), streams{&out, &stderr}, tc.args); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("stderr %q does not say %q", stderr.String(), tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("prose on stdout: %q", out.String())
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want int
	}{
		{"fine", nil, exitFine},
		{"failed", errors.New("a step failed"), exitFailed},
		{"no engine", fmt.Errorf("up: %w", &engine.Missing{}), exitEnvironment},
		{"machine too small", fmt.Errorf("up: %w", &preflight.Failures{}), exitEnvironment},
		{"usage", usageError{errors.New("bad flag")}, exitUsage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := exitCode(tc.err); got != tc.want {
				t.Errorf("exitCode(%v) = %d, want %d", tc.err, got, tc.want)
			}
		})
	}
}
