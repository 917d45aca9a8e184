package extension

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestArgumentsOverrideTheChart: the extension uses the last value of a flag.
func TestArgumentsOverrideTheChart(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	health := flags.String("health-bind-address", "", "")
	level := flags.String("log-level", "", "")
	chart := []string{"--health-bind-address=:8081", "--log-level=info"}
	if err := flags.Parse(overriding(chart, "/folder", []string{"1", "2", "3"})); err != nil {
		t.Fatal(err)
	}
	if *health != "127.0.0.1:1" || *level != "info" {
		t.Errorf("health at %s, log level %s", *health, *level)
	}
}

// TestStartAgain checks that a process that exits is started again, but not forever.
func TestStartAgain(t *testing.T) {
	folder := t.TempDir()
	program, log := filepath.Join(folder, "program"), filepath.Join(folder, "starts")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho x >>"+log+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), program, folder, nil, nil); err == nil || !strings.Contains(err.Error(), "exited") {
		t.Errorf("error = %v", err)
	}
	if got, err := os.ReadFile(log); err != nil || strings.Count(string(got), "x") != starts {
		t.Errorf("started %d times, want %d: %v", strings.Count(string(got), "x"), starts, err)
	}
}
