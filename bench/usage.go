package bench

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Usage is the CPU time and memory of a process and its children, such as nginx and its workers.
type Usage struct {
	CPU time.Duration // user and system time
	// Resident is the memory in RAM, and Peak the maximum over each process's life. Both are sums
	// over all processes, in bytes.
	Resident, Peak uint64
}

// Usage reads the usage from the kernel, and fails if the process has ended.
func (p *Process) Usage() (u Usage, err error) {
	if err := p.Running(); err != nil {
		return Usage{}, err
	}
	parent := strconv.Itoa(p.cmd.Process.Pid)
	children, err := os.ReadFile("/proc/" + parent + "/task/" + parent + "/children")
	if err != nil {
		return Usage{}, fmt.Errorf("list the children of the %s: %w", p.name, err)
	}
	for _, id := range append(strings.Fields(string(children)), parent) {
		pid, err := strconv.ParseInt(id, 10, 32)
		proc, procErr := procfs.NewProc(int(pid))
		status, statusErr := proc.NewStatus()
		// This is the CPU clock of another process, see clock_getcpuclockid(3): the ticks of
		// /proc/<pid>/stat are as long as a small download.
		var cpu unix.Timespec
		clockErr := unix.ClockGettime(^int32(pid)<<3|2, &cpu)
		if err := errors.Join(err, procErr, statusErr, clockErr); err != nil {
			return Usage{}, fmt.Errorf("read the usage of the %s: %w", p.name, err)
		}
		u.CPU, u.Resident, u.Peak = u.CPU+time.Duration(cpu.Nano()), u.Resident+status.VmRSS, u.Peak+status.VmHWM
	}
	return u, nil
}

// Machine returns a description of this machine, for example "2 CPUs, 24 GiB, Linux 6.18, go1.26,
// load average 1.1". It includes the load, since a busy machine gives bad numbers.
func Machine() (string, error) {
	var kernel unix.Utsname
	var system unix.Sysinfo_t
	if err := errors.Join(unix.Uname(&kernel), unix.Sysinfo(&system)); err != nil {
		return "", fmt.Errorf("read the machine: %w", err)
	}
	return fmt.Sprintf("%d CPUs, %.0f GiB, Linux %s, %s, load average %.1f", runtime.NumCPU(),
		float64(system.Totalram)*float64(system.Unit)/(1<<30), unix.ByteSliceToString(kernel.Release[:]), runtime.Version(),
		float64(system.Loads[0])/(1<<16)), nil
}

// Latency contains percentiles by nearest rank, in seconds.
type Latency struct{ P50, P99 float64 }

// NewLatency returns the percentiles of the samples, or 0 without samples.
func NewLatency(samples []time.Duration) Latency {
	sorted := slices.Sorted(slices.Values(samples))
	rank := func(p float64) float64 {
		if len(sorted) == 0 {
			return 0
		}
		return sorted[int(math.Ceil(p*float64(len(sorted))))-1].Seconds()
	}
	return Latency{P50: rank(0.5), P99: rank(0.99)}
}
