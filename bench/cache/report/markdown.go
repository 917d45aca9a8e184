package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/bench/cache/contender"
)

// Markdown renders machine, goals, rows and faults.
func Markdown(r cache.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Machine\n\n%s: %d CPUs (%s), %.0f GiB,\nLinux %s, %s. Load average before: %.1f, after: %.1f.\nRounds: %d.",
		r.Date, r.Machine.CPUs, r.Machine.Model, float64(r.Machine.MemoryBytes)/(1<<30), r.Machine.Kernel, r.Machine.Go,
		r.LoadBefore, r.LoadAfter, r.Rounds)
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(&b, " %s: %s.", name, r.Versions[name])
	}
	b.WriteString("\n\n## Goals\n\n| goal | result | rows |\n| --- | --- | --- |\n")
	for _, goal := range r.Goals {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", goal.Name, verdict(goal), strings.Join(details(goal), "<br>"))
	}
	for _, state := range []struct{ name, title string }{{cache.Warm, "Warm"}, {cache.Cold, "Cold"}, {cache.Herd, "Herd"}} {
		fmt.Fprintf(&b, "\n## %s\n\n%s", state.title, tableHead)
		for _, row := range r.Rows {
			if row.State == state.name {
				writeRow(&b, row)
			}
		}
	}
	b.WriteString("\n## Faults\n")
	for _, fault := range r.Faults {
		writeFault(&b, fault)
	}
	return b.String()
}

func verdict(g cache.Goal) string {
	switch {
	case !g.Judged:
		return "– not measured"
	case g.Held:
		return "✓ held"
	default:
		return fmt.Sprintf("**✗ missed** in %d of %d rows", len(g.Missed), len(g.Details))
	}
}

// details are those of missed rows, or of all rows if there are few.
func details(g cache.Goal) []string {
	const few = 5
	if len(g.Missed) > 0 {
		return g.Missed
	}
	if len(g.Details) > few {
		return []string{fmt.Sprintf("all %d", len(g.Details))}
	}
	return g.Details
}

const tableHead = "| row | | MB/s | first byte p50, p99 ms | last byte p50, p99 ms | CPU s/GB | memory MiB " +
	"| upstream requests | upstream MB | failed |\n" +
	"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"

func writeRow(b *strings.Builder, row cache.Measured) {
	title := row.Name()
	for _, name := range contender.Names {
		r := row.Results[name]
		cpu, memory := fmt.Sprintf("%.2f", r.CPUPerGB), fmt.Sprintf("%.0f", r.Peak/(1<<20))
		if name == contender.Direct {
			cpu, memory = "", ""
		}
		fmt.Fprintf(b, "| %s | %s | %.0f | %s | %s | %s | %s | %.0f | %.1f | %.0f |\n", title, name, r.Throughput/cache.MB,
			latency(r.FirstByte), latency(r.LastByte), cpu, memory, r.UpstreamRequests, r.UpstreamBytes/cache.MB, r.Failed)
		title = ""
	}
}

func latency(l cache.Latency) string { return fmt.Sprintf("%.1f, %.1f", 1000*l.P50, 1000*l.P99) }

func writeFault(b *strings.Builder, fault cache.Fault) {
	fmt.Fprintf(b, "\n### When %s\n\n", fault.Name)
	if fault.Skipped != "" {
		fmt.Fprintf(b, "Skipped: %s.\n", fault.Skipped)
		return
	}
	b.WriteString("| | asked for | whole | first byte or error, s | upstream requests | upstream MB | failure |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: | --- |\n")
	for _, name := range contender.Names {
		for _, a := range fault.Outcome[name] {
			requests, traffic := "", ""
			if a.Upstream != nil {
				requests, traffic = fmt.Sprint(a.Upstream.Requests), fmt.Sprintf("%.1f", float64(a.Upstream.Bytes)/cache.MB)
			}
			fmt.Fprintf(b, "| %s | %s | %d of %d | %.2f | %s | %s | %s |\n", name, a.Asked, a.Whole, a.Clients, a.Seconds,
				requests, traffic, strings.ReplaceAll(a.Failure, "\n", "; "))
		}
	}
}
