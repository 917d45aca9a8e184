package extension

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/bench"
)

// Report is the result of one call.
type Report struct {
	Machine    bench.Machine `json:"machine"`
	Kubernetes string        `json:"kubernetes"` // version
	// Runs are in the order of the measurements.
	Runs  []Run        `json:"runs"`
	Goals []bench.Goal `json:"goals"`
}

// Run contains the results for one number of shoots, measured on new API servers.
type Run struct {
	Shoots int `json:"shoots"`
	// LoadBefore and LoadAfter are one-minute load averages at the start and the end of the run.
	LoadBefore float64 `json:"loadBefore"`
	LoadAfter  float64 `json:"loadAfter"`
	// First is the first reconciliation of all Extensions. NoOp is the second, without a change.
	First Pass `json:"first"`
	NoOp  Pass `json:"noOp"`
	// Broken is like NoOp, but the API server of one shoot hangs, and the API server of a second shoot
	// refuses connections. Only the other shoots are measured.
	Broken Pass `json:"broken"`
	// Memory is the memory usage of the extension's process.
	Memory Memory `json:"memory"`
	// Webhook is measured while the extension is idle, WebhookBroken while it retries the broken
	// shoots.
	Webhook       Latency `json:"webhook"`
	WebhookBroken Latency `json:"webhookBroken"`
	// Forbidden counts requests that RBAC rejected.
	Forbidden map[string]int `json:"forbidden"`
}

// Pass is one reconciliation of many Extensions.
type Pass struct {
	Extensions int `json:"extensions"`
	// Seconds is the time from the first request about any of the shoots to the last response.
	Seconds float64 `json:"seconds"`
	// CPUSeconds is user and system time of the extension.
	CPUSeconds float64 `json:"cpuSeconds"`
	// Extension is the time from the extension's first API request about a shoot to the last response.
	Extension Latency  `json:"extension"`
	Seed      Requests `json:"seed"`
	Shoot     Requests `json:"shoot"`
	// Unrelated is the number of requests to the seed that concern no shoot.
	Unrelated int `json:"unrelated"`
}

// Requests are means per Extension.
type Requests struct {
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
	// Kinds counts reads and writes by verb and resource.
	Kinds map[string]float64 `json:"kinds"`
}

// Total returns the sum of reads and writes.
func (r Requests) Total() float64 { return r.Reads + r.Writes }

// Memory is in bytes.
type Memory struct {
	// Idle is measured after the start, before the first Extension exists. Steady is measured at
	// the end.
	Idle   uint64 `json:"idleBytes"`
	Peak   uint64 `json:"peakBytes"`
	Steady uint64 `json:"steadyBytes"`
}

// Latency is a distribution, in seconds.
type Latency struct {
	Count  int     `json:"count"`
	Failed int     `json:"failed"`
	P50    float64 `json:"p50Seconds"`
	P99    float64 `json:"p99Seconds"`
	Max    float64 `json:"maxSeconds"`
	// CPU is the CPU time of the extension for each sample, or 0 if it was not measured.
	CPU float64 `json:"cpuSeconds,omitempty"`
}

// newLatency returns the distribution of the samples.
func newLatency(samples []time.Duration, failed int) Latency {
	return Latency{
		Count: len(samples), Failed: failed,
		P50: bench.Percentile(samples, 0.5), P99: bench.Percentile(samples, 0.99), Max: bench.Percentile(samples, 1),
	}
}

// row is one row of the table. If growth is true, the row also shows the growth from run to run.
type row struct {
	name   string
	format string
	value  func(Run) float64
	growth bool
}

func passRows(name string, pass func(Run) Pass) []row {
	milli := func(of func(Pass) float64) func(Run) float64 {
		return func(r Run) float64 { return 1000 * of(pass(r)) }
	}
	plain := func(of func(Pass) float64) func(Run) float64 {
		return func(r Run) float64 { return of(pass(r)) }
	}
	return []row{
		{name + ": seconds, all", "%.1f", plain(func(p Pass) float64 { return p.Seconds }), false},
		{name + ": ms per Extension", "%.1f", milli(func(p Pass) float64 { return perExtension(p).seconds }), true},
		{name + ": CPU ms per Extension", "%.1f", milli(func(p Pass) float64 { return perExtension(p).cpu }), true},
		{name + ": one Extension, p50 ms", "%.0f", milli(func(p Pass) float64 { return p.Extension.P50 }), true},
		{name + ": one Extension, p99 ms", "%.0f", milli(func(p Pass) float64 { return p.Extension.P99 }), true},
		{name + ": seed reads per Extension", "%.2f", plain(func(p Pass) float64 { return p.Seed.Reads }), true},
		{name + ": seed writes per Extension", "%.2f", plain(func(p Pass) float64 { return p.Seed.Writes }), true},
		{name + ": shoot reads per Extension", "%.2f", plain(func(p Pass) float64 { return p.Shoot.Reads }), true},
		{name + ": shoot writes per Extension", "%.2f", plain(func(p Pass) float64 { return p.Shoot.Writes }), true},
		{name + ": other requests, all", "%.0f", plain(func(p Pass) float64 { return float64(p.Unrelated) }), false},
	}
}

func rows() []row {
	all := passRows("from zero", func(r Run) Pass { return r.First })
	all = append(all, passRows("without a change", func(r Run) Pass { return r.NoOp })...)
	all = append(all,
		row{
			"two shoots broken, the others: ms per Extension", "%.1f",
			func(r Run) float64 { return 1000 * perExtension(r.Broken).seconds }, true,
		},
		row{"two shoots broken, the others: p99 ms", "%.0f", func(r Run) float64 { return 1000 * r.Broken.Extension.P99 }, true},
		row{"memory before the first Extension, MiB", "%.0f", func(r Run) float64 { return mebibytes(r.Memory.Idle) }, true},
		row{"memory at most, MiB", "%.0f", func(r Run) float64 { return mebibytes(r.Memory.Peak) }, true},
		row{"memory at the end, MiB", "%.0f", func(r Run) float64 { return mebibytes(r.Memory.Steady) }, true},
		row{"webhook p50 ms", "%.1f", func(r Run) float64 { return 1000 * r.Webhook.P50 }, true},
		row{"webhook p99 ms", "%.1f", func(r Run) float64 { return 1000 * r.Webhook.P99 }, true},
		row{"webhook CPU ms per review", "%.1f", func(r Run) float64 { return 1000 * r.Webhook.CPU }, true},
		row{"two shoots broken: webhook p50 ms", "%.1f", func(r Run) float64 { return 1000 * r.WebhookBroken.P50 }, true},
		row{"two shoots broken: webhook p99 ms", "%.1f", func(r Run) float64 { return 1000 * r.WebhookBroken.P99 }, true},
		row{"load average before", "%.1f", func(r Run) float64 { return r.LoadBefore }, false},
		row{"load average after", "%.1f", func(r Run) float64 { return r.LoadAfter }, false},
	)
	return all
}

// Markdown renders three parts: a table with columns for the runs and for the growth from run to
// run, the goals, and the requests of the last run by kind.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d CPUs, %.0f GiB, Kubernetes %s, %s\n\n",
		r.Machine.CPUs, float64(r.Machine.MemoryBytes)/(1<<30), r.Kubernetes, r.Machine.Go)
	r.table(&b)
	b.WriteString("\n")
	for _, goal := range r.Goals {
		fmt.Fprintf(&b, "- %s\n", summary(goal))
	}
	if len(r.Runs) > 0 {
		last := r.Runs[len(r.Runs)-1]
		fmt.Fprintf(&b, "\nRequests per Extension at %d shoots:\n\n", last.Shoots)
		b.WriteString("| request | from zero | without a change |\n| --- | ---: | ---: |\n")
		kinds(&b, "seed", last.First.Seed.Kinds, last.NoOp.Seed.Kinds)
		kinds(&b, "shoot", last.First.Shoot.Kinds, last.NoOp.Shoot.Kinds)
	}
	return b.String()
}

func (r Report) table(b *strings.Builder) {
	head, line := "| |", "| --- |"
	for i, run := range r.Runs {
		head += fmt.Sprintf(" %d |", run.Shoots)
		line += " ---: |"
		if i > 0 {
			head += fmt.Sprintf(" %d→%d |", r.Runs[i-1].Shoots, run.Shoots)
			line += " ---: |"
		}
	}
	b.WriteString(head + "\n" + line + "\n")
	for _, row := range rows() {
		b.WriteString("| " + row.name + " |")
		for i, run := range r.Runs {
			fmt.Fprintf(b, " "+row.format+" |", row.value(run))
			switch {
			case i > 0 && row.growth && row.value(r.Runs[i-1]) != 0:
				fmt.Fprintf(b, " ×%.2f |", ratio(row.value(run), row.value(r.Runs[i-1])))
			case i > 0:
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
}

func kinds(b *strings.Builder, server string, first, again map[string]float64) {
	names := maps.Clone(first)
	maps.Copy(names, again)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(b, "| %s: %s | %.2f | %.2f |\n", server, name, first[name], again[name])
	}
}

func summary(goal bench.Goal) string {
	text := goal.Name + " (" + strings.Join(goal.Details, "; ") + ")"
	switch {
	case !goal.Judged:
		return "– " + goal.Name + " (not measured)"
	case goal.Held:
		return "✓ " + text
	default:
		return "✗ " + text
	}
}
