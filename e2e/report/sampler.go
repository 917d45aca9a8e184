package report

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

// samplingInterval is short enough to measure the peak of a build or of a cluster start.
const samplingInterval = 500 * time.Millisecond

// Usage is the CPU and memory usage of the whole machine during a run. Memory in use is MemTotal
// minus MemAvailable of /proc/meminfo: the memory of all processes, but no reclaimable page cache.
type Usage struct {
	// StartMemoryBytes was in use when the run began, PeakMemoryBytes at the peak. On an idle machine
	// the difference is what a new testbed needs. Both include a kept testbed.
	StartMemoryBytes, PeakMemoryBytes uint64
	// TotalMemoryBytes is the size of the machine's memory.
	TotalMemoryBytes uint64
	// Samples are in chronological order.
	Samples []Sample
}

// Sample is the machine's usage at one time.
type Sample struct {
	Time        time.Time
	MemoryBytes uint64
	// CPU is the busy share of all CPUs since the previous sample, from 0 to 1.
	CPU float64
}

// Sampler records the machine's usage in the background.
type Sampler struct {
	read func() (reading, error)

	mu    sync.Mutex
	usage Usage
	last  reading
	err   error

	stop    chan struct{}
	stopped sync.WaitGroup
}

// reading contains memory in bytes, and the busy and total seconds of all CPUs since boot.
type reading struct {
	usedMemory, totalMemory uint64
	busy, elapsed           float64
}

// StartSampler returns a Sampler that samples the usage twice a second until Stop is called.
func StartSampler() *Sampler {
	return startSampler(func() (reading, error) { return readUsage(procfs.DefaultMountPoint) })
}

func startSampler(read func() (reading, error)) *Sampler {
	s := &Sampler{read: read, stop: make(chan struct{})}
	s.last, s.err = read()
	s.usage = Usage{
		StartMemoryBytes: s.last.usedMemory, PeakMemoryBytes: s.last.usedMemory, TotalMemoryBytes: s.last.totalMemory,
	}
	s.stopped.Go(func() {
		ticker := time.NewTicker(samplingInterval)
		defer ticker.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-ticker.C:
				s.sample(time.Now())
			}
		}
	})
	return s
}

// Usage returns the usage so far, and the error of the last failed sample.
func (s *Sampler) Usage() (Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	usage := s.usage
	usage.Samples = slices.Clone(usage.Samples)
	return usage, s.err
}

// Stop ends the sampling; Usage may still be called.
func (s *Sampler) Stop() {
	close(s.stop)
	s.stopped.Wait()
}

func (s *Sampler) sample(now time.Time) {
	current, err := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = err
		return
	}
	sample := Sample{Time: now, MemoryBytes: current.usedMemory}
	if elapsed := current.elapsed - s.last.elapsed; elapsed > 0 {
		// The idle time can decrease (/proc/stat in proc(5)), so limit the share to 0 and 1.
		sample.CPU = min(max((current.busy-s.last.busy)/elapsed, 0), 1)
	}
	s.last = current
	s.usage.PeakMemoryBytes = max(s.usage.PeakMemoryBytes, current.usedMemory)
	s.usage.Samples = append(s.usage.Samples, sample)
}

// readUsage reads meminfo and stat of the proc file system that is mounted at the path.
func readUsage(proc string) (reading, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return reading{}, fmt.Errorf("read the machine's usage: %w", err)
	}
	memory, memoryErr := fs.Meminfo()
	stat, statErr := fs.Stat()
	if err := errors.Join(memoryErr, statErr); err != nil {
		return reading{}, fmt.Errorf("read the memory in use and the CPU time: %w", err)
	}
	total, available := memory.MemTotalBytes, memory.MemAvailableBytes
	if total == nil || available == nil || *available > *total {
		return reading{}, fmt.Errorf("%s/meminfo has no usable MemTotal and MemAvailable", proc)
	}
	cpu := stat.CPUTotal // User and Nice include Guest and GuestNice
	busy := cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ + cpu.Steal
	return reading{usedMemory: *total - *available, totalMemory: *total, busy: busy, elapsed: busy + cpu.Idle + cpu.Iowait}, nil
}
