package report

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

// samplingInterval is short enough to measure the peak of a build or of a cluster start.
const samplingInterval = 500 * time.Millisecond

// Usage is what the whole machine used during a run. Memory in use is MemTotal minus MemAvailable
// of /proc/meminfo: the memory of all processes, without the reclaimable page cache.
type Usage struct {
	// StartMemoryBytes is the memory in use when the run began, and PeakMemoryBytes is the maximum. On
	// an idle machine the difference is what a new testbed needs. Both include a kept testbed.
	StartMemoryBytes, PeakMemoryBytes uint64
	// CPUSeconds is the sum of the times that each CPU was busy since the run began.
	CPUSeconds float64
}

// Sampler records the machine's usage in the background.
type Sampler struct {
	read func() (reading, error)

	mu    sync.Mutex
	usage Usage
	busy  float64 // at the start
	err   error

	stop    chan struct{}
	stopped sync.WaitGroup
}

// reading contains the memory in use, in bytes, and the busy seconds of all CPUs since boot.
type reading struct {
	usedMemory uint64
	busy       float64
}

// StartSampler returns a Sampler that samples the usage twice a second until Stop is called.
func StartSampler() *Sampler {
	return startSampler(func() (reading, error) { return readUsage(procfs.DefaultMountPoint) })
}

func startSampler(read func() (reading, error)) *Sampler {
	s := &Sampler{read: read, stop: make(chan struct{})}
	first, err := read()
	s.err, s.busy, s.usage.StartMemoryBytes, s.usage.PeakMemoryBytes = err, first.busy, first.usedMemory, first.usedMemory
	s.stopped.Go(func() {
		ticker := time.NewTicker(samplingInterval)
		defer ticker.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-ticker.C:
				s.sample()
			}
		}
	})
	return s
}

// Usage returns the usage so far, and the error of the last failed sample.
func (s *Sampler) Usage() (Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage, s.err
}

// Stop ends the sampling; Usage may still be called.
func (s *Sampler) Stop() {
	close(s.stop)
	s.stopped.Wait()
}

func (s *Sampler) sample() {
	current, err := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = err
		return
	}
	s.usage.PeakMemoryBytes = max(s.usage.PeakMemoryBytes, current.usedMemory)
	s.usage.CPUSeconds = current.busy - s.busy
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
	return reading{usedMemory: *total - *available, busy: busy}, nil
}
