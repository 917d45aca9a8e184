package cache

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"k8s.io/utils/ptr"
)

// Machine describes the machine of a run.
type Machine struct {
	CPUs        int    `json:"cpus"`
	Model       string `json:"model"`
	MemoryBytes uint64 `json:"memoryBytes"`
	Kernel      string `json:"kernel"`
	Go          string `json:"go"`
	// SHA256PerGB is the CPU time of one pass, in seconds per GB.
	SHA256PerGB float64 `json:"sha256SecondsPerGB"`
}

// ReadMachine describes this machine. It measures SHA-256 for about a second.
func ReadMachine() (Machine, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return Machine{}, fmt.Errorf("read the machine: %w", err)
	}
	memory, err := fs.Meminfo()
	if err != nil {
		return Machine{}, fmt.Errorf("read the size of the memory: %w", err)
	}
	cpus, err := fs.CPUInfo()
	if err != nil || len(cpus) == 0 {
		return Machine{}, fmt.Errorf("read the model of the CPU: %w", err)
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return Machine{}, fmt.Errorf("read the version of the kernel: %w", err)
	}
	sha256PerGB, err := measureSHA256()
	if err != nil {
		return Machine{}, err
	}
	return Machine{
		CPUs: runtime.NumCPU(), Model: cpus[0].ModelName, MemoryBytes: ptr.Deref(memory.MemTotalBytes, 0),
		Kernel: unix.ByteSliceToString(kernel.Release[:]), Go: runtime.Version(), SHA256PerGB: sha256PerGB,
	}, nil
}

// measureSHA256 hashes 1 GB and returns the CPU seconds of its thread.
func measureSHA256() (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := threadSeconds()
	if err != nil {
		return 0, err
	}
	hash, block := sha256.New(), make([]byte, MB)
	for range GB / MB {
		hash.Write(block)
	}
	after, err := threadSeconds()
	return after - before, err
}

func threadSeconds() (float64, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		return 0, fmt.Errorf("read the CPU time of this thread: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds(), nil
}

func loadAverage() (float64, error) {
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
