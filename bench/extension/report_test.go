package extension

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// soundRun applies the changes to a run that meets every goal, and returns this run.
func soundRun(shoots int, changes ...func(*Run)) Run {
	pass := func(seed map[string]float64, reads, writes float64) Pass {
		return Pass{
			Extensions: shoots, Seconds: 0.1 * float64(shoots), CPUSeconds: 0.02 * float64(shoots),
			Extension: Latency{Count: shoots, P50: 0.9, P99: 1.5, Max: 2},
			Seed:      Requests{Reads: reads, Writes: writes, Kinds: seed},
			Shoot:     Requests{Reads: 1, Kinds: map[string]float64{"list services": 1}},
		}
	}
	again := map[string]float64{"get extensions": 5, "patch extensions": 1, "patch extensions/status": 2}
	run := Run{
		Shoots: shoots, LoadBefore: 0.5, LoadAfter: 2,
		First:         pass(map[string]float64{"get extensions": 5, "create managedresources": 1, "patch extensions/status": 3}, 5, 4),
		NoOp:          pass(again, 5, 3),
		Broken:        pass(again, 5, 3),
		Memory:        Memory{Idle: 60 << 20, Peak: 200 << 20, Steady: 100 << 20},
		Webhook:       Latency{Count: 500, P50: 0.002, P99: 0.004, Max: 0.02, CPU: 0.003},
		WebhookBroken: Latency{Count: 500, P50: 0.002, P99: 0.005, Max: 0.02},
	}
	for _, change := range changes {
		change(&run)
	}
	return run
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name   string
		runs   []Run
		missed []string // parts of the names of missed goals
	}{
		{"all met", []Run{soundRun(100), soundRun(1000), soundRun(3000)}, nil},
		{"a write too many", []Run{soundRun(10, func(r *Run) { r.NoOp.Seed.Kinds["delete secrets"] = 1 })}, []string{"writes only"}},
		{"the contract's write twice", []Run{soundRun(10, func(r *Run) { r.NoOp.Seed.Kinds["patch extensions"] = 2 })}, []string{"writes only"}},
		{"a write to the shoot", []Run{soundRun(10, func(r *Run) { r.NoOp.Shoot.Kinds["update services"] = 1 })}, []string{"writes only"}},
		{"more reads are no write", []Run{soundRun(10, func(r *Run) { r.NoOp.Seed.Kinds["get secrets"] = 9 })}, nil},
		{"too many requests", []Run{soundRun(10), soundRun(20, func(r *Run) { r.First.Seed.Reads = 11 })}, []string{"requests per first"}},
		{"too much memory", []Run{soundRun(1000, func(r *Run) { r.Memory.Peak = 257 << 20 })}, []string{"256 MiB"}},
		{"much memory with more shoots", []Run{soundRun(3000, func(r *Run) { r.Memory.Peak = 999 << 20 })}, nil},
		{"not flat", []Run{soundRun(100), soundRun(3000, func(r *Run) { r.NoOp.CPUSeconds *= 1.6 })}, []string{"flat"}},
		{"slow webhook", []Run{soundRun(10, func(r *Run) { r.Webhook.P99 = 0.011 })}, []string{"webhook"}},
		{"slow webhook when two are broken", []Run{soundRun(10, func(r *Run) { r.WebhookBroken.P99 = 0.011 })}, []string{"webhook"}},
		{"webhook refuses", []Run{soundRun(10, func(r *Run) { r.Webhook.Failed = 1 })}, []string{"webhook"}},
		{"others wait", []Run{soundRun(10, func(r *Run) { r.Broken.Seconds *= 1.6 })}, []string{"delay no other"}},
		{"forbidden", []Run{soundRun(10, func(r *Run) { r.Forbidden = map[string]int{"get pods": 1} })}, []string{"forbidden"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var missed []string
			for _, goal := range Judge(test.runs) {
				if len(goal.Missed) > 0 {
					missed = append(missed, goal.Name)
				}
			}
			if !slices.EqualFunc(missed, test.missed, strings.Contains) {
				t.Errorf("missed %q, want %q", missed, test.missed)
			}
		})
	}
}

func TestMarkdown(t *testing.T) {
	for name, runs := range map[string][]Run{
		"none.md":  nil,
		"quick.md": {soundRun(10), soundRun(100, func(r *Run) { r.NoOp.Seed.Kinds["delete secrets"] = 1 })},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report{
				Machine: bench.Machine{CPUs: 2, MemoryBytes: 24 << 30, Go: "go1"}, Kubernetes: "v1.36.2",
				Runs: runs, Goals: Judge(runs),
			}
			golden.Compare(t, name, []byte(r.Markdown()))
		})
	}
}
