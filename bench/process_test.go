package bench_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/bench"
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
	_, err := bench.Program{
		Name: "x", Path: script(t, "echo no such flag >&2; exit 2"), Folder: t.TempDir(), Ready: "http://127.0.0.1:1/",
	}.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no such flag") || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("error %v, want the output and the exit code of the process", err)
	}
}

func TestStartReportsAMissingProgram(t *testing.T) {
	if _, err := (bench.Program{Name: "x", Path: "/does/not/exist", Folder: t.TempDir()}).Start(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestStop(t *testing.T) {
	p, err := bench.Program{Name: "x", Path: script(t, "exec tail -f /dev/null"), Folder: t.TempDir()}.Start(t.Context())
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
	ports, err := bench.FreePorts(5)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 5 {
		t.Errorf("ports %v", ports)
	}
}

// TestUsage: the CPU time of a child counts, as that of nginx's workers does.
func TestUsage(t *testing.T) {
	process, err := bench.Program{
		Name: "x", Path: script(t, "(while :; do :; done) &\ntrap 'kill $!' TERM\nwait\n"), Folder: t.TempDir(),
	}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var usage bench.Usage
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		usage, err = process.Usage()
		return usage.CPU > 50*time.Millisecond, err
	})
	if err != nil || usage.Resident == 0 || usage.Peak < usage.Resident {
		t.Errorf("usage %+v, error %v", usage, err)
	}
	if err := errors.Join(process.ResetPeak(), process.Stop()); err != nil {
		t.Error(err)
	}
	if _, err := process.Usage(); err == nil {
		t.Error("no error after the process has ended")
	}
}

// TestPercentile: the nearest rank, and 0 of nothing.
func TestPercentile(t *testing.T) {
	var samples []time.Duration
	for i := range 200 {
		samples = append(samples, time.Duration(200-i)*time.Millisecond)
	}
	for p, want := range map[float64]float64{0.5: 0.1, 0.99: 0.198, 1: 0.2} {
		if got := bench.Percentile(samples, p); got != want {
			t.Errorf("percentile %g is %g, want %g", p, got, want)
		}
	}
	if got := bench.Percentile(nil, 0.99); got != 0 {
		t.Errorf("of nothing: %g", got)
	}
}

// TestJudge: a goal is held if all measurements hold it, and at least one was judged.
func TestJudge(t *testing.T) {
	var goal bench.Goal
	for i, step := range []struct{ held, want bool }{{true, true}, {true, true}, {false, false}, {true, false}} {
		if goal.Judge(step.held, "x"); !goal.Judged || goal.Held != step.want {
			t.Errorf("after measurement %d: %+v", i, goal)
		}
	}
	if len(goal.Details) != 4 || len(goal.Missed) != 1 {
		t.Errorf("%+v", goal)
	}
}
