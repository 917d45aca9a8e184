package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench/daemon"
)

// script writes a shell script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestStartReportsAnEarlyEnd(t *testing.T) {
	_, err := daemon.Start(t.Context(), daemon.Options{
		Name: "x", Program: script(t, "echo no such flag >&2; exit 2"), Folder: t.TempDir(), Ready: "http://127.0.0.1:1/",
	})
	if err == nil || !strings.Contains(err.Error(), "no such flag") || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("error %v, want the output and the exit code of the process", err)
	}
}

func TestStartReportsAMissingProgram(t *testing.T) {
	if _, err := daemon.Start(t.Context(), daemon.Options{Name: "x", Program: "/does/not/exist", Folder: t.TempDir()}); err == nil {
		t.Error("no error")
	}
}

func TestStop(t *testing.T) {
	p, err := daemon.Start(t.Context(), daemon.Options{Name: "x", Program: script(t, "exec tail -f /dev/null"), Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Running(); err != nil {
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := p.Running(); err == nil {
		t.Error("the process still runs")
	}
}

func TestFreePorts(t *testing.T) {
	ports, err := daemon.FreePorts(5)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 5 {
		t.Errorf("ports %v", ports)
	}
}
