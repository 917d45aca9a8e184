package bench

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
)

// Report is the result of one call of the command.
type Report struct {
	Machine Machine `json:"machine"`
	// Runs are in the order of the measurements.
	Runs  []Run  `json:"runs"`
	Goals []Goal `json:"goals"`
}

// Machine is the machine of the measurement.
type Machine struct {
	CPUs        int    `json:"cpus"`
	MemoryBytes uint64 `json:"memoryBytes"`
	Go          string `json:"go"`
	Kubernetes  string `json:"kubernetes"`
}

// Run is the measurement of one number of shoots, on new API servers.
type Run struct {
	Shoots int `json:"shoots"`
	// LoadBefore and LoadAfter are the load averages of the machine over one minute. LoadBefore is the
	// load of other programs.
	LoadBefore float64 `json:"loadBefore"`
	LoadAfter  float64 `json:"loadAfter"`
	// First is the first reconciliation of all Extensions, NoOp another one without a change.
	First Pass `json:"first"`
	NoOp  Pass `json:"noOp"`
	// Broken is like NoOp, while the API server of one other shoot hangs and that of another refuses
	// connections.
	Broken Pass `json:"broken"`
	// Memory is that of the extension.
	Memory Memory `json:"memory"`
	// Webhook is measured while the extension is idle, WebhookBroken while it retries the two broken
	// shoots.
	Webhook       Latency `json:"webhook"`
	WebhookBroken Latency `json:"webhookBroken"`
	// Forbidden counts requests that RBAC rejected.
	Forbidden map[string]int `json:"forbidden"`
}

// Pass is one reconciliation of many Extensions.
type Pass struct {
	Extensions int `json:"extensions"`
	// Seconds is the time from the first request about any of the shoots to the last response.
	Seconds float64 `json:"seconds"`
	// CPUSeconds is user and system time of the extension.
	CPUSeconds float64 `json:"cpuSeconds"`
	// Extension is the time from the first request about a shoot to the last response.
	Extension Latency  `json:"extension"`
	Seed      Requests `json:"seed"`
	Shoot     Requests `json:"shoot"`
	// Unrelated is the total of requests to the seed that are about no shoot.
	Unrelated int `json:"unrelated"`
}

// Requests are means per Extension.
type Requests struct {
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
	// Kinds counts both, by verb and resource.
	Kinds map[string]float64 `json:"kinds"`
}

// Total returns the sum of reads and writes.
func (r Requests) Total() float64 { return r.Reads + r.Writes }

// Memory is in bytes.
type Memory struct {
	// Idle is measured after the start, before the first Extension, and Steady at the end.
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
	// CPU is that of the extension for each sample; 0 if it was not measured.
	CPU float64 `json:"cpuSeconds,omitempty"`
}

// newLatency returns the distribution of the samples, by nearest rank.
func newLatency(samples []time.Duration, failed int) Latency {
	if len(samples) == 0 {
		return Latency{Failed: failed}
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := func(p float64) float64 {
		return sorted[int(math.Ceil(p*float64(len(sorted))))-1].Seconds()
	}
	return Latency{Count: len(sorted), Failed: failed, P50: rank(0.5), P99: rank(0.99), Max: rank(1)}
}

// ReadMachine describes this machine.
func ReadMachine() (Machine, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return Machine{}, fmt.Errorf("reading /proc: %w", err)
	}
	memory, err := fs.Meminfo()
	if err != nil {
		return Machine{}, fmt.Errorf("reading the size of the memory: %w", err)
	}
	machine := Machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), Kubernetes: nodeimage.KubernetesVersion}
	if memory.MemTotalBytes != nil {
		machine.MemoryBytes = *memory.MemTotalBytes
	}
	return machine, nil
}

// loadAverage returns that of the last minute.
func loadAverage() (float64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("reading /proc: %w", err)
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return 0, fmt.Errorf("reading the load average: %w", err)
	}
	return load.Load1, nil
}
