package cache

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench"
)

// equal returns a row in which all contenders have equal results, except that change is applied to
// the cache's result.
func equal(row Row, change func(*Result)) Measured {
	result := Result{
		Throughput: 100, FirstByte: bench.Latency{P50: 0.1, P99: 0.2}, LastByte: bench.Latency{P50: 1, P99: 2}, CPUPerGB: 1, UpstreamRequests: 1, UpstreamBytes: 10,
	}
	m := Measured{Row: row, Results: map[string]Result{}}
	for _, name := range Contenders {
		m.Results[name] = result
	}
	change(&result)
	m.Results[Ours] = result
	return m
}

func TestJudge(t *testing.T) {
	warm := Row{State: Warm, Size: MB, Clients: 100}
	local := Row{State: Cold, Size: MB, Clients: 1}
	line := Row{State: Cold, Size: MB, Clients: 1, Delay: near, Rate: lineRate}
	herd := Row{State: Herd, Size: MB, Clients: 20}
	tests := []struct {
		name   string
		row    Row
		change func(*Result)
		missed []string // beginnings of the names of missed goals
	}{
		{"warm", warm, func(*Result) {}, nil},
		{"warm, a little slower", warm, func(r *Result) { r.Throughput = 95.1; r.FirstByte.P99 = 0.239; r.CPUPerGB = 1.09 }, nil},
		{"warm, slow", warm, func(r *Result) { r.Throughput = 94 }, []string{"warm: throughput"}},
		{"warm, CPU", warm, func(r *Result) { r.CPUPerGB = 1.11 }, []string{"warm: CPU"}},
		{"warm, first byte", warm, func(r *Result) { r.FirstByte.P99 = 0.25 }, []string{"warm, 100 clients"}},
		{"warm, first byte of one", Row{State: Warm, Clients: 1}, func(r *Result) { r.FirstByte.P99 = 0.25 }, nil},
		{"cold", local, func(*Result) {}, nil},
		{"cold, slow", local, func(r *Result) { r.LastByte.P50 = 1.01 }, []string{"cold over loopback: time"}},
		{"cold, checks the digest", local, func(r *Result) { r.CPUPerGB = 1.49 }, nil},
		{"cold, CPU", local, func(r *Result) { r.CPUPerGB = 1.51 }, []string{"cold over loopback: CPU"}},
		{"cold, first byte", local, func(r *Result) { r.FirstByte.P50 = 0.111 }, []string{"cold: first byte"}},
		{"line", line, func(r *Result) { r.LastByte.P50 = 1.04; r.CPUPerGB = 2 }, nil},
		{"line, slow", line, func(r *Result) { r.LastByte.P50 = 1.06 }, []string{"cold over a line"}},
		{"herd, slow", herd, func(r *Result) { r.LastByte.P50 = 9; r.Throughput = 1; r.CPUPerGB = 9; r.FirstByte.P99 = 9 }, nil},
		{"herd, requests", herd, func(r *Result) { r.UpstreamRequests = 2 }, []string{"all: fewest upstream requests"}},
		{"herd, bytes", herd, func(r *Result) { r.UpstreamBytes = 11 }, []string{"all: fewest upstream bytes"}},
		{"a fault, slow and failed", Row{State: Cold, Size: MB, Clients: 1, Fault: Hangs}, func(r *Result) { r.LastByte.P50 = 9; r.Failed = 1 }, nil},
		{"herd, failed", herd, func(r *Result) { r.Failed = 1 }, []string{"all: no failed"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, goal := range judge([]Measured{equal(test.row, test.change)}, 0.5) {
				want := slices.ContainsFunc(test.missed, func(name string) bool { return strings.HasPrefix(goal.Name, name) })
				if missed := len(goal.Missed) > 0; missed != want {
					t.Errorf("%s: %s, %q", goal.Name, goal.Verdict(), goal.Details)
				}
			}
		})
	}
}

// TestJudgeNamesRows: one bad row among good ones misses the goal, and is named.
func TestJudgeNamesRows(t *testing.T) {
	rows := []Measured{
		equal(Row{State: Warm, Size: MB, Clients: 1}, func(*Result) {}),
		equal(Row{State: Warm, Size: GB, Clients: 1}, func(r *Result) { r.Throughput = 50 }),
	}
	goal := judge(rows, 0)[0]
	if len(goal.Details) != 2 || !slices.Equal(goal.Missed, []string{"warm 1 GB: ×0.500"}) {
		t.Errorf("got %+v", goal)
	}
	for _, goal := range judge(nil, 0) {
		if len(goal.Details) > 0 {
			t.Errorf("%s is judged without rows", goal.Name)
		}
	}
}

// TestLeastIgnoresFailures: the cache is not compared with a contender whose downloads fail.
func TestLeastIgnoresFailures(t *testing.T) {
	row := equal(Row{State: Herd}, func(*Result) {})
	row.Results[Nginx] = Result{Failed: 1}
	for _, goal := range judge([]Measured{row}, 0) {
		if len(goal.Missed) > 0 {
			t.Errorf("%s: %q", goal.Name, goal.Missed)
		}
	}
}
