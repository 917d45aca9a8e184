package bench_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
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
	if err := process.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := process.Usage(); err == nil {
		t.Error("no error after the process has ended")
	}
}

// TestLatency: percentiles are by nearest rank, and 0 without samples.
func TestLatency(t *testing.T) {
	var samples []time.Duration
	for i := 200; i > 0; i-- {
		samples = append(samples, time.Duration(i)*time.Second)
	}
	for _, test := range []struct {
		name     string
		samples  []time.Duration
		p50, p99 float64
	}{
		{"none", nil, 0, 0},
		{"one", samples[199:], 1, 1},
		{"two", samples[198:], 1, 2},
		{"many", samples, 100, 198},
	} {
		if got := bench.NewLatency(test.samples); got != (bench.Latency{P50: test.p50, P99: test.p99}) {
			t.Errorf("%s: %+v, want %g and %g", test.name, got, test.p50, test.p99)
		}
	}
}

// TestMachine: the text contains the parts that tell one machine from another.
func TestMachine(t *testing.T) {
	if got, err := bench.Machine(); err != nil || !regexp.MustCompile(`^[1-9]\d* CPUs, [1-9]\d* GiB, Linux \d.*, go1\..*, load average \d`).MatchString(got) {
		t.Errorf("%q, error %v", got, err)
	}
}

// TestGoal: a goal is held if all measurements meet it, and at least one was judged.
func TestGoal(t *testing.T) {
	var goal bench.Goal
	if got := goal.Verdict(); got != "– not measured" {
		t.Errorf("without a measurement: %s", got)
	}
	for i, step := range []struct {
		held bool
		want string
	}{{true, "✓ held"}, {true, "✓ held"}, {false, "✗ missed in 1 of 3"}, {true, "✗ missed in 1 of 4"}} {
		if goal.Judge(step.held, "x"); goal.Verdict() != step.want {
			t.Errorf("after measurement %d: %s", i, goal.Verdict())
		}
	}
}
