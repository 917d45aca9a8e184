package report

import (
	"math"
	"slices"
	"time"
)

// Report is what one call of the benchmark measured.
type Report struct {
	Machine Machine `json:"machine"`
	// Runs are in the order in which they ran.
	Runs []Run `json:"runs"`
	// Goals are judged by Judge.
	Goals []Goal `json:"goals"`
}

// Machine is where it ran.
type Machine struct {
	CPUs        int    `json:"cpus"`
	MemoryBytes uint64 `json:"memoryBytes"`
	Go          string `json:"go"`
	Kubernetes  string `json:"kubernetes"`
}

// Run is one number of shoots, on new API servers.
type Run struct {
	Shoots int `json:"shoots"`
	// LoadBefore and LoadAfter are the machine's load averages over one minute; the first is what others did.
	LoadBefore float64 `json:"loadBefore"`
	LoadAfter  float64 `json:"loadAfter"`
	// First is the reconciliation of all Extensions from zero, NoOp of all again without a change.
	First Pass `json:"first"`
	NoOp  Pass `json:"noOp"`
	// Broken is another one without a change, of all but the two shoots whose API servers hang and are gone.
	Broken Pass `json:"broken"`
	// Memory is that of the extension's process.
	Memory Memory `json:"memory"`
	// Webhook is measured at rest, WebhookBroken while the Extensions of the two broken shoots are retried.
	Webhook       Latency `json:"webhook"`
	WebhookBroken Latency `json:"webhookBroken"`
	// Forbidden counts requests that RBAC refused.
	Forbidden map[string]int `json:"forbidden"`
}

// Pass is one reconciliation of many Extensions.
type Pass struct {
	// Extensions is how many.
	Extensions int `json:"extensions"`
	// Seconds is the time from the first request about any of the shoots to the last answer.
	Seconds float64 `json:"seconds"`
	// CPUSeconds is user and system time of the extension's process.
	CPUSeconds float64 `json:"cpuSeconds"`
	// Extension is the time from the first request about a shoot to the last answer.
	Extension Latency `json:"extension"`
	// Seed and Shoot are the requests to each.
	Seed  Requests `json:"seed"`
	Shoot Requests `json:"shoot"`
	// Unrelated are requests to the seed that are about no shoot, in all.
	Unrelated int `json:"unrelated"`
}

// Requests are means per Extension.
type Requests struct {
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
	// Kinds are both, by verb and resource.
	Kinds map[string]float64 `json:"kinds"`
}

// Total is reads and writes.
func (r Requests) Total() float64 { return r.Reads + r.Writes }

// Memory is in bytes.
type Memory struct {
	// Idle is after the start, with shoots but without Extensions; Steady at the end, when everything has been done; Peak the
	// most there was.
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
	// CPU is that of the extension's process, for each; 0 where it is not measured.
	CPU float64 `json:"cpuSeconds,omitempty"`
}

// NewLatency returns the distribution of the samples, by nearest rank; the zero value for none.
func NewLatency(samples []time.Duration, failed int) Latency {
	if len(samples) == 0 {
		return Latency{Failed: failed}
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := func(p float64) float64 {
		return sorted[int(math.Ceil(p*float64(len(sorted))))-1].Seconds()
	}
	return Latency{Count: len(sorted), Failed: failed, P50: rank(0.5), P99: rank(0.99), Max: rank(1)}
}
