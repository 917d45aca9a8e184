package extension

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is the CPU and memory of a process.
type Usage struct {
	// CPU is user and system time since the start.
	CPU time.Duration
	// Resident is the memory in RAM now, Peak its maximum since the start. Both are in bytes.
	Resident, Peak uint64
}

// Usage reads the usage from the kernel. It fails if the process has ended.
func (p *Process) Usage() (Usage, error) {
	if err := p.Running(); err != nil {
		return Usage{}, err
	}
	usage, err := usageOf(p.cmd.Process.Pid)
	if err != nil {
		return Usage{}, fmt.Errorf("reading the CPU and memory of the extension: %w", err)
	}
	return usage, nil
}

func usageOf(pid int) (Usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, err
	}
	status, err := proc.NewStatus()
	if err != nil {
		return Usage{}, err
	}
	return Usage{
		CPU:      time.Duration(stat.CPUTime() * float64(time.Second)),
		Resident: status.VmRSS,
		Peak:     status.VmHWM,
	}, nil
}
