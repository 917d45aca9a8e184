package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"k8s.io/utils/ptr"
)

// Usage is what a process and its children use, such as nginx with its workers.
type Usage struct {
	CPU time.Duration // user and system, since the start
	// Resident is the memory in RAM, Peak its maximum since the start or ResetPeak. Both are in bytes,
	// the sum of all processes.
	Resident, Peak uint64
}

// Usage reads the usage from the kernel, and fails if the process has ended.
func (p *Process) Usage() (u Usage, err error) {
	if err := p.Running(); err != nil {
		return Usage{}, err
	}
	err = eachProcess(p.cmd.Process.Pid, func(proc procfs.Proc) error {
		status, err := proc.NewStatus()
		if err != nil {
			return err
		}
		u.Resident, u.Peak = u.Resident+status.VmRSS, u.Peak+status.VmHWM
		cpu, err := threadTime(proc)
		u.CPU += cpu
		return err
	})
	return u, err
}

// ResetPeak makes the kernel measure the peak from now on.
func (p *Process) ResetPeak() error {
	return eachProcess(p.cmd.Process.Pid, func(proc procfs.Proc) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", proc.PID), []byte("5"), 0) // see proc(5)
	})
}

// threadTime sums what the scheduler counts for each thread, because the ticks of a process's stat
// are as long as a small download.
func threadTime(p procfs.Proc) (total time.Duration, err error) {
	threads, err := procfs.AllThreads(p.PID)
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		stat, err := thread.Schedstat()
		if gone(err) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of a thread (the kernel needs CONFIG_SCHED_INFO): %w", err)
		}
		total += time.Duration(stat.RunningNanoseconds)
	}
	return total, nil
}

// eachProcess calls do for the process with this ID and for its children.
func eachProcess(pid int, do func(procfs.Proc) error) error {
	all, err := procfs.AllProcs()
	if err != nil {
		return fmt.Errorf("list the processes: %w", err)
	}
	for _, p := range all {
		stat, err := p.Stat()
		if gone(err) || err == nil && p.PID != pid && stat.PPID != pid {
			continue
		}
		if err == nil {
			err = do(p)
		}
		if err != nil && !gone(err) {
			return fmt.Errorf("read process %d: %w", p.PID, err)
		}
	}
	return nil
}

// gone reports whether a process or thread ended while it was read.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// Machine describes the machine of a measurement.
type Machine struct {
	CPUs        int    `json:"cpus"`
	Model       string `json:"model"`
	MemoryBytes uint64 `json:"memoryBytes"`
	Kernel      string `json:"kernel"`
	Go          string `json:"go"`
}

// ReadMachine describes this machine.
func ReadMachine() (Machine, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return Machine{}, fmt.Errorf("read the machine: %w", err)
	}
	memory, memoryErr := fs.Meminfo()
	cpus, cpuErr := fs.CPUInfo()
	var kernel unix.Utsname
	if err := errors.Join(memoryErr, cpuErr, unix.Uname(&kernel)); err != nil {
		return Machine{}, fmt.Errorf("read the machine: %w", err)
	}
	m := Machine{
		CPUs: runtime.NumCPU(), MemoryBytes: ptr.Deref(memory.MemTotalBytes, 0),
		Kernel: unix.ByteSliceToString(kernel.Release[:]), Go: runtime.Version(),
	}
	if len(cpus) > 0 {
		m.Model = cpus[0].ModelName
	}
	return m, nil
}

// LoadAverage returns the one-minute load average.
func LoadAverage() (float64, error) {
	var load *procfs.LoadAvg
	fs, err := procfs.NewDefaultFS()
	if err == nil {
		load, err = fs.LoadAvg()
	}
	if err != nil {
		return 0, fmt.Errorf("read the load average: %w", err)
	}
	return load.Load1, nil
}

// Percentile returns a percentile by nearest rank in seconds, such as 0.99, or 0 without samples.
func Percentile(samples []time.Duration, p float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[int(math.Ceil(p*float64(len(sorted))))-1].Seconds()
}
