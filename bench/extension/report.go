package extension

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/bench"
)

// Report is the result of one call of `bench controller`.
type Report struct {
	Machine string
	Runs    []Run // in the order of the measurements
}

// Run contains the results for one number of shoots, measured on new API servers.
type Run struct {
	Binary string // empty if only one is measured
	Shoots int
	// First is the first reconciliation of all Extensions. NoOp is the second, without a change.
	First, NoOp Pass
	// Broken is like NoOp, but the API server of one shoot hangs, and the API server of a second shoot
	// refuses connections. Only the other shoots are measured.
	Broken Pass
	// Idle is the memory of the extension's process before the first Extension exists, and Peak is
	// the maximum, both in bytes.
	Idle, Peak uint64
	// Webhook is measured while the extension is idle, and WebhookBroken while it retries the broken
	// shoots.
	Webhook, WebhookBroken Latency
	Forbidden              bench.Requests // the requests that RBAC rejected
}

func (r Run) name() string { return strings.TrimSpace(fmt.Sprintf("%s %d", r.Binary, r.Shoots)) }

// Pass contains the measurements of one reconciliation of many Extensions. All values are means per
// Extension.
type Pass struct {
	// Seconds is the time from the first request about any of the shoots to the last response. CPU is
	// the user and system time of the extension.
	Seconds, CPU float64
	Requests     map[string]float64 // by API server, verb and resource, such as "seed: get secrets"
}

func (p Pass) total() (sum float64) {
	for _, count := range p.Requests {
		sum += count
	}
	return sum
}

// Latency contains the measurements of the webhook's answers.
type Latency struct {
	bench.Latency
	CPU    float64 // CPU seconds of the extension per review
	Failed int
}

// rows describes the rows of the report's table.
var rows = []struct {
	name, format string
	value        func(Run) float64
	flat         bool // it must not grow with the number of shoots
}{
	{"from zero: ms per Extension", "%.1f", func(r Run) float64 { return 1000 * r.First.Seconds }, true},
	{"from zero: CPU ms per Extension", "%.1f", func(r Run) float64 { return 1000 * r.First.CPU }, true},
	{"from zero: requests per Extension", "%.1f", func(r Run) float64 { return r.First.total() }, true},
	{"without a change: ms per Extension", "%.1f", func(r Run) float64 { return 1000 * r.NoOp.Seconds }, true},
	{"without a change: CPU ms per Extension", "%.1f", func(r Run) float64 { return 1000 * r.NoOp.CPU }, true},
	{"without a change: requests per Extension", "%.1f", func(r Run) float64 { return r.NoOp.total() }, true},
	{"two shoots broken, the others: ms per Extension", "%.1f", func(r Run) float64 { return 1000 * r.Broken.Seconds }, false},
	{"memory before the first Extension, MiB", "%.0f", func(r Run) float64 { return mebibytes(r.Idle) }, false},
	{"memory at most, MiB", "%.0f", func(r Run) float64 { return mebibytes(r.Peak) }, false},
	{"webhook p50 ms", "%.1f", func(r Run) float64 { return 1000 * r.Webhook.P50 }, false},
	{"webhook p99 ms", "%.1f", func(r Run) float64 { return 1000 * r.Webhook.P99 }, false},
	{"webhook CPU ms per review", "%.1f", func(r Run) float64 { return 1000 * r.Webhook.CPU }, false},
	{"two shoots broken: webhook p99 ms", "%.1f", func(r Run) float64 { return 1000 * r.WebhookBroken.P99 }, false},
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// Markdown renders a table with a column for each run, the goals, and the requests of the last run
// by kind.
func (r Report) Markdown() string {
	var b strings.Builder
	head := r.Machine + "\n\n| |"
	for _, run := range r.Runs {
		head += " " + run.name() + " |"
	}
	b.WriteString(head + "\n| --- |" + strings.Repeat(" ---: |", len(r.Runs)) + "\n")
	for _, row := range rows {
		b.WriteString("| " + row.name + " |")
		for _, run := range r.Runs {
			fmt.Fprintf(&b, " "+row.format+" |", row.value(run))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, goal := range judge(r.Runs) {
		b.WriteString("- " + goal.Name + ": " + strings.Join(append([]string{goal.Verdict()}, goal.Details...), "; ") + "\n")
	}
	if len(r.Runs) > 0 {
		last := r.Runs[len(r.Runs)-1]
		fmt.Fprintf(&b, "\n| requests per Extension, %s shoots | from zero | without a change |\n| --- | ---: | ---: |\n", last.name())
		requests := maps.Clone(last.First.Requests)
		maps.Copy(requests, last.NoOp.Requests)
		for _, request := range slices.Sorted(maps.Keys(requests)) {
			fmt.Fprintf(&b, "| %s | %.2f | %.2f |\n", request, last.First.Requests[request], last.NoOp.Requests[request])
		}
	}
	return b.String()
}
