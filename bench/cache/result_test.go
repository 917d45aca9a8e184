package cache

import (
	"errors"
	"testing"
	"time"
)

func TestPercentiles(t *testing.T) {
	var hundred []time.Duration
	for i := 100; i > 0; i-- {
		hundred = append(hundred, time.Duration(i)*time.Second)
	}
	tests := []struct {
		name     string
		samples  []time.Duration
		p50, p99 float64
	}{
		{"none", nil, 0, 0},
		{"one", hundred[:1], 100, 100},
		{"two", hundred[:2], 99, 100},
		{"hundred", hundred, 50, 99},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := latency(test.samples); got != (Latency{P50: test.p50, P99: test.p99}) {
				t.Errorf("got %+v, want %v and %v", got, test.p50, test.p99)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	answers := []reply{
		{First: time.Second, Last: 2 * time.Second, Bytes: 30},
		{First: time.Hour, Last: time.Hour, Bytes: 10, Err: errors.New("cut")},
	}
	got, bytes := summary(answers, 4*time.Second)
	want := Result{
		Throughput: 10, FirstByte: Latency{P50: 1, P99: 1}, LastByte: Latency{P50: 2, P99: 2}, Failed: 1, Failure: "cut",
	}
	if got != want || bytes != 40 {
		t.Errorf("got %+v and %d bytes, want %+v and 40", got, bytes, want)
	}
}

// TestMedian: each value is the median of its own, wherever the others are from.
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

func TestAnswerOf(t *testing.T) {
	got := answerOf("a blob", []reply{
		{First: time.Second}, {First: 3 * time.Second, Err: errors.New("status 502")}, {First: 2 * time.Second},
	})
	if want := (Answer{Asked: "a blob", Clients: 3, Whole: 2, Seconds: 3, Failure: "status 502"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
