package cache

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/bench"
)

// Goals of docs/benchmarks.md.
const (
	minThroughput = 0.95  // of nginx's, warm
	maxWarmCPU    = 1.1   // of nginx's
	maxFirstByte  = 1.2   // of nginx's p99, warm
	manyClients   = 100   // of that goal
	maxLineTime   = 1.05  // of a direct download's time, over a line
	maxAddedDelay = 0.010 // seconds until the first byte, more than a direct download
)

// check compares the cache with the others in one row.
type check func(ours Result, all map[string]Result) (held bool, detail string)

// Judge returns all goals. sha256PerGB is the CPU time of one SHA-256 pass, which nginx saves: it
// checks no digest.
func Judge(rows []Measured, sha256PerGB float64) []bench.Goal {
	warm := func(r Row) bool { return r.State == Warm }
	cold := func(r Row) bool { return r.State == Cold }
	return []bench.Goal{
		judge(rows, fmt.Sprintf("warm: throughput ≥ %g × nginx's", minThroughput), warm,
			versus(Nginx, func(r Result) float64 { return r.Throughput }, func(ratio float64) bool { return ratio >= minThroughput })),
		judge(rows, fmt.Sprintf("warm: CPU per GB ≤ %g × nginx's", maxWarmCPU), warm, atMost(maxWarmCPU, Nginx, cpu)),
		judge(rows, fmt.Sprintf("warm, %d clients: p99 of the first byte ≤ %g × nginx's", manyClients, maxFirstByte),
			func(r Row) bool { return warm(r) && r.Clients == manyClients },
			atMost(maxFirstByte, Nginx, func(r Result) float64 { return r.FirstByte.P99 })),
		judge(rows, fmt.Sprintf("cold over a line: time ≤ %g × direct", maxLineTime),
			func(r Row) bool { return cold(r) && r.Rate > 0 }, atMost(maxLineTime, Direct, lastByte)),
		judge(rows, "cold over loopback: time ≤ nginx's",
			func(r Row) bool { return cold(r) && r.loopback() }, atMost(1, Nginx, lastByte)),
		judge(rows, "cold over loopback: CPU per GB ≤ nginx's and one SHA-256 pass",
			func(r Row) bool { return cold(r) && r.loopback() }, withSHA256(sha256PerGB)),
		judge(rows, fmt.Sprintf("cold: first byte ≤ direct + %g ms", 1000*maxAddedDelay), cold, firstByte),
		judge(rows, "all: fewest upstream requests", every, least(func(r Result) float64 { return r.UpstreamRequests }, "%.0f")),
		judge(rows, "all: fewest upstream bytes", every, least(func(r Result) float64 { return r.UpstreamBytes / MB }, "%.1f MB")),
		judge(rows, "all: no failed download", every, func(ours Result, _ map[string]Result) (bool, string) {
			return ours.Failed == 0, fmt.Sprintf("%.0f", ours.Failed)
		}),
	}
}

func every(Row) bool               { return true }
func cpu(r Result) float64         { return r.CPUPerGB }
func lastByte(r Result) float64    { return r.LastByte.P50 }
func ratio(is, of float64) float64 { return is / max(of, 1e-9) }

func judge(rows []Measured, name string, applies func(Row) bool, holds check) (g bench.Goal) {
	g.Name = name
	for _, row := range rows {
		if !applies(row.Row) {
			continue
		}
		held, value := holds(row.Results[Ours], row.Results)
		g.Judge(held, row.Name()+": "+value)
	}
	return g
}

func versus(other string, value func(Result) float64, held func(ratio float64) bool) check {
	return func(ours Result, all map[string]Result) (bool, string) {
		is := ratio(value(ours), value(all[other]))
		return held(is), fmt.Sprintf("×%.3f", is)
	}
}

func atMost(limit float64, other string, value func(Result) float64) check {
	return versus(other, value, func(ratio float64) bool { return ratio <= limit })
}

func withSHA256(perGB float64) check {
	return func(ours Result, all map[string]Result) (bool, string) {
		limit := all[Nginx].CPUPerGB + perGB
		return ours.CPUPerGB <= limit, fmt.Sprintf("%.2f s (%.2f + %.2f)", ours.CPUPerGB, limit-perGB, perGB)
	}
}

func firstByte(ours Result, all map[string]Result) (bool, string) {
	added := ours.FirstByte.P50 - all[Direct].FirstByte.P50
	return added <= maxAddedDelay, fmt.Sprintf("%+.1f ms", 1000*added)
}

// least ignores contenders with failed downloads: who delivers less needs less.
func least(value func(Result) float64, format string) check {
	return func(ours Result, all map[string]Result) (bool, string) {
		var others []string
		held := true
		for _, name := range Contenders {
			if other := all[name]; name != Ours && other.Failed == 0 {
				held = held && value(ours) <= value(other)
				others = append(others, fmt.Sprintf(name+" "+format, value(other)))
			}
		}
		return held, fmt.Sprintf(format, value(ours)) + " (" + strings.Join(slices.Clip(others), ", ") + ")"
	}
}
