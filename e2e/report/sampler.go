package report

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// samplingInterval is short enough for a build or a cluster start, which last seconds, and costs nothing to speak of.
const samplingInterval = 500 * time.Millisecond

// MemorySampler watches how much memory the machine uses. "Used" is MemTotal minus MemAvailable of /proc/meminfo: page
// cache that can be dropped does not count, everything else on the machine does, also what is none of ours.
type MemorySampler struct {
	read func() ([]byte, error)

	mu          sync.Mutex
	start, peak uint64
	err         error

	stop    chan struct{}
	stopped sync.WaitGroup
}

// SampleMemory starts sampling, twice a second, until Stop is called.
func SampleMemory() *MemorySampler {
	return sampleMemory(func() ([]byte, error) { return os.ReadFile("/proc/meminfo") })
}

func sampleMemory(read func() ([]byte, error)) *MemorySampler {
	m := &MemorySampler{read: read, stop: make(chan struct{})}
	m.start, m.err = m.used()
	m.peak = m.start
	m.stopped.Go(func() {
		ticker := time.NewTicker(samplingInterval)
		defer ticker.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-ticker.C:
				m.sample()
			}
		}
	})
	return m
}

// Used returns the bytes that were used at the start, and at the highest; an error if memory could not be read.
func (m *MemorySampler) Used() (start, peak uint64, err error) {
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.start, m.peak, m.err
}

// Stop ends the sampling; Used may still be called.
func (m *MemorySampler) Stop() {
	close(m.stop)
	m.stopped.Wait()
}

func (m *MemorySampler) sample() {
	used, err := m.used()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.err = err
		return
	}
	m.peak = max(m.peak, used)
}

func (m *MemorySampler) used() (uint64, error) {
	data, err := m.read()
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory in use: %w", err)
	}
	return usedMemory(data)
}

// usedMemory takes the text of /proc/meminfo and returns MemTotal minus MemAvailable in bytes.
func usedMemory(meminfo []byte) (uint64, error) {
	values := map[string]uint64{}
	for lines := bufio.NewScanner(bytes.NewReader(meminfo)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		if kib, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
			values[strings.TrimSuffix(fields[0], ":")] = kib * 1024
		}
	}
	total, available := values["MemTotal"], values["MemAvailable"]
	if total == 0 || available == 0 || available > total {
		return 0, fmt.Errorf("meminfo has no usable MemTotal (%d) and MemAvailable (%d)", total, available)
	}
	return total - available, nil
}
