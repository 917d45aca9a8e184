package cache

import (
	"errors"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func sample() Report {
	result := Result{
		Throughput: 5e8, FirstByte: bench.Latency{P50: 0.001, P99: 0.0025}, LastByte: bench.Latency{P50: 0.5, P99: 1},
		CPUPerGB: 0.123, Peak: 64 << 20, UpstreamRequests: 1, UpstreamBytes: 1e7,
	}
	slow := result
	slow.UpstreamRequests = 3
	return Report{
		Date: "2026-01-02", Machine: "2 CPUs, 8 GiB, Linux 6.1, go1, load average 0.5",
		Versions: map[string]string{"nginx": "1.22.1", "ours": "abc"}, Rounds: 3, Rows: []Measured{
			{Row: Row{State: Warm, Size: 10 * MB, Clients: 100}, Results: map[string]Result{
				Ours: slow, Stock: result, Nginx: result, Direct: result}},
			{Row: Row{State: Cold, Size: 32 << 20, Clients: 2, Fault: Cuts}, Results: map[string]Result{
				Ours:  {Slowest: 0.25, UpstreamRequests: 4, UpstreamBytes: 3e7},
				Stock: {Slowest: 1.5, Failed: 1, Failure: "cut\nafter all"},
			}},
		},
	}
}

func TestMarkdown(t *testing.T) { golden.Compare(t, "sample.md", sample().Markdown()) }

func TestSummary(t *testing.T) {
	answers := []reply{
		{First: time.Second, Last: 2 * time.Second, Bytes: 30},
		{First: time.Hour, Last: time.Hour, Bytes: 10, Err: errors.New("cut")},
	}
	got, bytes := summary(answers, 4*time.Second)
	want := Result{
		Throughput: 10, FirstByte: bench.Latency{P50: 1, P99: 1}, LastByte: bench.Latency{P50: 2, P99: 2},
		Slowest: 3600, Failed: 1, Failure: "cut",
	}
	if got != want || bytes != 40 {
		t.Errorf("got %+v and %d bytes, want %+v and 40", got, bytes, want)
	}
}

// TestMedian: each value has its own median, so values may be from different rounds.
func TestMedian(t *testing.T) {
	got := median([]Result{
		{Throughput: 3, CPUPerGB: 10, Failure: ""},
		{Throughput: 1, CPUPerGB: 30, UpstreamBytes: 7, Failed: 1, Failure: "cut"},
		{Throughput: 2, CPUPerGB: 20, UpstreamBytes: 5},
	})
	if want := (Result{Throughput: 2, CPUPerGB: 20, UpstreamBytes: 5, Failure: "cut"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if even := median([]Result{{Peak: 4}, {Peak: 2}}); even.Peak != 2 {
		t.Errorf("the median of two is %v, want the lower one", even.Peak)
	}
}
