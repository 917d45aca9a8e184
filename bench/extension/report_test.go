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
	pass := func(requests map[string]float64) Pass { return Pass{Seconds: 0.1, CPU: 0.02, Requests: requests} }
	again := func() map[string]float64 {
		return map[string]float64{"seed: get extensions": 5, "seed: patch extensions": 1, "seed: patch extensions/status": 2, "shoot: list services": 1}
	}
	run := Run{
		Shoots: shoots,
		First: pass(map[string]float64{
			"seed: get extensions": 5, "seed: create managedresources": 1, "seed: patch extensions/status": 3, "shoot: list services": 1,
		}),
		NoOp: pass(again()), Broken: pass(again()),
		Idle: 60 << 20, Peak: 200 << 20,
		Webhook:       Latency{Latency: bench.Latency{P50: 0.002, P99: 0.004}, CPU: 0.003},
		WebhookBroken: Latency{Latency: bench.Latency{P50: 0.002, P99: 0.005}},
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
		{"a write too many", []Run{soundRun(10, func(r *Run) { r.NoOp.Requests["seed: delete secrets"] = 1 })}, []string{"writes only"}},
		{"the contract's write twice", []Run{soundRun(10, func(r *Run) { r.NoOp.Requests["seed: patch extensions"] = 2 })}, []string{"writes only"}},
		{"a write to the shoot", []Run{soundRun(10, func(r *Run) { r.NoOp.Requests["shoot: update services"] = 1 })}, []string{"writes only"}},
		{"more reads are no write", []Run{soundRun(10, func(r *Run) { r.NoOp.Requests["seed: get secrets"] = 9 })}, nil},
		{"too many requests", []Run{soundRun(10), soundRun(20, func(r *Run) { r.First.Requests["seed: get extensions"] = 11 })}, []string{"requests per first"}},
		{"too much memory", []Run{soundRun(1000, func(r *Run) { r.Peak = 257 << 20 })}, []string{"256 MiB"}},
		{"much memory with more shoots", []Run{soundRun(3000, func(r *Run) { r.Peak = 999 << 20 })}, nil},
		{"not flat", []Run{soundRun(100), soundRun(3000, func(r *Run) { r.NoOp.CPU *= 1.6 })}, []string{"flat"}},
		{"another binary is not flat", []Run{soundRun(100), soundRun(3000, func(r *Run) { r.Binary = "other"; r.NoOp.CPU *= 1.6 })}, nil},
		{"slow webhook", []Run{soundRun(10, func(r *Run) { r.Webhook.P99 = 0.011 })}, []string{"webhook"}},
		{"slow webhook when two are broken", []Run{soundRun(10, func(r *Run) { r.WebhookBroken.P99 = 0.011 })}, []string{"webhook"}},
		{"webhook refuses", []Run{soundRun(10, func(r *Run) { r.Webhook.Failed = 1 })}, []string{"webhook"}},
		{"others wait", []Run{soundRun(10, func(r *Run) { r.Broken.Seconds *= 1.6 })}, []string{"delay no other"}},
		{"forbidden", []Run{soundRun(10, func(r *Run) { r.Forbidden = bench.Requests{"get pods": 1} })}, []string{"forbidden"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var missed []string
			for _, goal := range judge(test.runs) {
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
	const machine = "2 CPUs, 24 GiB, Linux 6.1, go1, load average 0.5"
	old, wrong := func(r *Run) { r.Binary = "old" }, func(r *Run) { r.Binary = "new"; r.NoOp.Requests["seed: delete secrets"] = 1 }
	for name, runs := range map[string][]Run{
		"none.md":    nil,
		"quick.md":   {soundRun(10), soundRun(100)},
		"compare.md": {soundRun(10, old), soundRun(10, wrong)},
	} {
		t.Run(name, func(t *testing.T) { golden.Compare(t, name, Report{Machine: machine, Runs: runs}.Markdown()) })
	}
}
