package cache

import (
	"cmp"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/bench"
)

// Report is the result of one run.
type Report struct {
	Date    string  `json:"date"`
	Machine Machine `json:"machine"`
	// Versions are those of the contenders.
	Versions map[string]string `json:"versions"`
	Rounds   int               `json:"rounds"`
	// LoadBefore and LoadAfter are one-minute load averages.
	LoadBefore float64      `json:"loadBefore"`
	LoadAfter  float64      `json:"loadAfter"`
	Rows       []Measured   `json:"rows"`
	Faults     []Fault      `json:"faults"`
	Goals      []bench.Goal `json:"goals"`
}

// Measured is a row with the medians of all rounds by contender.
type Measured struct {
	Row     `json:"row"`
	Results map[string]Result `json:"results"`
}

// Result is what one contender needed for a row.
type Result struct {
	Throughput float64 `json:"bytesPerSecond"` // of all clients together
	FirstByte  Latency `json:"firstByte"`
	LastByte   Latency `json:"lastByte"`
	CPUPerGB   float64 `json:"cpuSecondsPerGB"` // per GB delivered
	Peak       float64 `json:"peakBytes"`       // resident memory
	// UpstreamRequests and UpstreamBytes are what the line to the upstream counted.
	UpstreamRequests float64 `json:"upstreamRequests"`
	UpstreamBytes    float64 `json:"upstreamBytes"`
	Failed           float64 `json:"failedDownloads"`
	Failure          string  `json:"failure,omitempty"` // of one failed download
}

// Latency has percentiles by nearest rank, in seconds.
type Latency struct {
	P50 float64 `json:"p50Seconds"`
	P99 float64 `json:"p99Seconds"`
}

func latency(samples []time.Duration) Latency {
	return Latency{P50: bench.Percentile(samples, 0.5), P99: bench.Percentile(samples, 0.99)}
}

// summary returns the latencies, the throughput and the failures.
func summary(answers []reply, took time.Duration) (r Result, bytes int64) {
	var first, last []time.Duration
	for _, a := range answers {
		bytes += a.Bytes
		if a.Err != nil {
			r.Failed++
			r.Failure = a.Err.Error()
			continue
		}
		first, last = append(first, a.First), append(last, a.Last)
	}
	r.FirstByte, r.LastByte = latency(first), latency(last)
	r.Throughput = float64(bytes) / took.Seconds()
	return r, bytes
}

// values are the measured values of a result.
func (r *Result) values() []*float64 {
	return []*float64{
		&r.Throughput, &r.FirstByte.P50, &r.FirstByte.P99, &r.LastByte.P50, &r.LastByte.P99,
		&r.CPUPerGB, &r.Peak, &r.UpstreamRequests, &r.UpstreamBytes, &r.Failed,
	}
}

// median returns the median of each value, of an even number of rounds the lower one.
func median(rounds []Result) (m Result) {
	for i, value := range m.values() {
		var all []float64
		for _, round := range rounds {
			all = append(all, *round.values()[i])
		}
		slices.Sort(all)
		*value = all[(len(all)-1)/2]
	}
	for _, round := range rounds {
		m.Failure = cmp.Or(m.Failure, round.Failure)
	}
	return m
}
