package cache

import (
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/bench"
)

// check compares the cache with the other contenders in one row.
type check func(ours Result, all map[string]Result) (held bool, detail string)

// judge returns all goals, judged by the rows without a fault. sha256PerGB is the time in seconds
// of one SHA-256 pass over 1 GB, which nginx saves, because it checks no digest.
func judge(rows []Measured, sha256PerGB float64) []bench.Goal {
	all := func(Row) bool { return true }
	warm := func(r Row) bool { return r.State == Warm }
	cold := func(r Row) bool { return r.State == Cold }
	line := func(r Row) bool { return cold(r) && r.Rate > 0 }
	loopback := func(r Row) bool { return cold(r) && r.Rate == 0 && r.Delay == 0 }
	var goals []bench.Goal
	for _, goal := range []struct {
		name    string
		applies func(Row) bool
		holds   check
	}{
		{"warm: throughput ≥ 0.95 × nginx's", warm, func(ours Result, all map[string]Result) (bool, string) {
			ratio := ours.Throughput / all[Nginx].Throughput
			return ratio >= 0.95, fmt.Sprintf("×%.3f", ratio)
		}},
		{"warm: CPU per GB ≤ 1.1 × nginx's", warm, atMost(1.1, Nginx, func(r Result) float64 { return r.CPUPerGB })},
		{"warm, 100 clients: p99 of the first byte ≤ 1.2 × nginx's", func(r Row) bool { return warm(r) && r.Clients == 100 },
			atMost(1.2, Nginx, func(r Result) float64 { return r.FirstByte.P99 })},
		{"cold over a line: time ≤ 1.05 × direct", line, atMost(1.05, Direct, func(r Result) float64 { return r.LastByte.P50 })},
		{"cold over loopback: time ≤ nginx's", loopback, atMost(1, Nginx, func(r Result) float64 { return r.LastByte.P50 })},
		{"cold over loopback: CPU per GB ≤ nginx's and one SHA-256 pass", loopback, func(ours Result, all map[string]Result) (bool, string) {
			nginx := all[Nginx].CPUPerGB
			return ours.CPUPerGB <= nginx+sha256PerGB, fmt.Sprintf("%.2f s (%.2f + %.2f)", ours.CPUPerGB, nginx, sha256PerGB)
		}},
		{"cold: first byte ≤ direct + 10 ms", cold, func(ours Result, all map[string]Result) (bool, string) {
			added := 1000 * (ours.FirstByte.P50 - all[Direct].FirstByte.P50)
			return added <= 10, fmt.Sprintf("%+.1f ms", added)
		}},
		{"all: fewest upstream requests", all, least(func(r Result) float64 { return r.UpstreamRequests }, "%.0f")},
		{"all: fewest upstream bytes", all, least(func(r Result) float64 { return r.UpstreamBytes / MB }, "%.1f MB")},
		{"all: no failed download", all, func(ours Result, _ map[string]Result) (bool, string) {
			return ours.Failed == 0, fmt.Sprintf("%.0f", ours.Failed)
		}},
	} {
		judged := bench.Goal{Name: goal.name}
		for _, row := range rows {
			if row.Fault == "" && goal.applies(row.Row) {
				held, detail := goal.holds(row.Results[Ours], row.Results)
				judged.Judge(held, row.Name()+": "+detail)
			}
		}
		goals = append(goals, judged)
	}
	return goals
}

func atMost(limit float64, other string, value func(Result) float64) check {
	return func(ours Result, all map[string]Result) (bool, string) {
		ratio := value(ours) / max(value(all[other]), 1e-9)
		return ratio <= limit, fmt.Sprintf("×%.3f", ratio)
	}
}

// least returns a check for the lowest value. It ignores contenders with failed downloads.
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
		return held, fmt.Sprintf(format, value(ours)) + " (" + strings.Join(others, ", ") + ")"
	}
}
