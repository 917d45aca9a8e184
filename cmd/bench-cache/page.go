package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/bench/cache/contender"
)

// markdown renders machine, goals, rows and faults.
func markdown(r cache.Report) string {
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
		fmt.Fprintf(&b, "\n## %s\n\n| %s |", state.title, strings.Join(contender.Names, "/"))
		for _, column := range columns {
			fmt.Fprintf(&b, " %s |", column.title)
		}
		fmt.Fprintf(&b, "\n| --- |%s\n", strings.Repeat(" ---: |", len(columns)))
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

// columns have a value of each contender, in the order of contender.Names.
var columns = []struct {
	title, format string
	process       bool // direct has no process
	value         func(cache.Result) float64
}{
	{"MB/s", "%.0f", false, func(r cache.Result) float64 { return r.Throughput / cache.MB }},
	{"first byte p50, ms", "%.1f", false, func(r cache.Result) float64 { return 1000 * r.FirstByte.P50 }},
	{"p99", "%.1f", false, func(r cache.Result) float64 { return 1000 * r.FirstByte.P99 }},
	{"last byte p50, ms", "%.0f", false, func(r cache.Result) float64 { return 1000 * r.LastByte.P50 }},
	{"p99", "%.0f", false, func(r cache.Result) float64 { return 1000 * r.LastByte.P99 }},
	{"CPU s/GB", "%.2f", true, func(r cache.Result) float64 { return r.CPUPerGB }},
	{"memory MiB", "%.0f", true, func(r cache.Result) float64 { return r.Peak / (1 << 20) }},
	{"upstream requests", "%.0f", false, func(r cache.Result) float64 { return r.UpstreamRequests }},
	{"upstream MB", "%.0f", false, func(r cache.Result) float64 { return r.UpstreamBytes / cache.MB }},
	{"failed", "%.0f", false, func(r cache.Result) float64 { return r.Failed }},
}

func writeRow(b *strings.Builder, row cache.Measured) {
	fmt.Fprintf(b, "| %s |", row.Name())
	for _, column := range columns {
		var values []string
		for _, name := range contender.Names {
			if !column.process || name != contender.Direct {
				values = append(values, fmt.Sprintf(column.format, column.value(row.Results[name])))
			}
		}
		fmt.Fprintf(b, " %s |", strings.Join(values, "/"))
	}
	b.WriteString("\n")
}

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

// Names of the files of a report below docs.
const (
	pageFile = "benchmarks.md"
	jsonFile = "benchmarks/cache.json"
)

// read reads the JSON of an earlier run, and judges its goals again.
func read(file string) (r cache.Report, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("read a report: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("report %s is no output of --json: %w", file, err)
	}
	if len(r.Rows) == 0 {
		return r, fmt.Errorf("report %s has no rows", file)
	}
	r.Goals = cache.Judge(r.Rows, r.Machine.SHA256PerGB)
	return r, nil
}

// write writes the page and its JSON below the folder.
func write(folder string, r cache.Report) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	for name, content := range map[string][]byte{jsonFile: append(text, '\n'), pageFile: []byte(introduction + markdown(r))} {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644)); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// introduction is the part of the page that depends on no result.
const introduction = "# Benchmarks of the cache\n\n" +
	"Generated by `make bench-cache-page` from [cache.json](benchmarks/cache.json). `make bench-cache`\n" +
	"measures again in 15 minutes, with `ARGS=--quick` in two, with `ARGS='--write docs'` it replaces\n" +
	"this page.\n" + `
## Setup

| part | in the benchmark |
| --- | --- |
| ours | this repository's cache with the configuration that the extension deploys |
| stock | distribution as a pull-through cache, with the same keys and an in-memory cache of descriptors |
| nginx | ` + "`proxy_cache` with `proxy_cache_lock`" + ` and sendfile, as many workers as CPUs |
| direct | no cache |
| the upstream | a distribution registry that stores in a folder; the same process for all |
| the line to it | a proxy that counts, holds back each request (ms), and limits the rate of all bodies together (MB/s) |
| clients | goroutines of one process, each on its own connection. They discard and compare the length |

All run on one machine and share its CPUs. Each measurement starts a process on an empty volume and
downloads one small blob first. The contenders take turns, and each round starts with another one.
The values are medians of all rounds; [cache.json](benchmarks/cache.json) has them with more digits.
A cell has those of ours, stock, nginx and direct, in this order. "Warm" means that the blob is
stored, "cold" that it is not, and "herd" that many clients ask at once for one that is not. The
delay applies to every request, also on a reused connection.

CPU is user and system time of the contender's processes, for each GB that clients got. Memory is
the sum of the peaks of their resident memory. Ours and stock compare what they store with its
digest, nginx does not: SHA-256 alone takes more than half a CPU second for each GB.

Goals that are missed have these reasons. Warm, most of the server's time is sendfile, in the
kernel. nginx's workers, one for each CPU, wait less often for a socket than goroutines do.
Cold, one goroutine reads, hashes and writes a blob, which matters only where the upstream is faster
than one core hashes: over a line the time is that of a direct download.

`
