package extension

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a process has used so far.
type Usage struct {
	// CPU is user and system time.
	CPU time.Duration
	// Resident is the memory in RAM now, in bytes, Peak the most there was since the process started.
	Resident, Peak uint64
}

// Usage reads what the kernel counts about the process.
func (p *Process) Usage() (Usage, error) {
	if err := p.Running(); err != nil {
		return Usage{}, err
	}
	usage, err := usageOf(p.cmd.Process.Pid)
	if err != nil {
		return Usage{}, fmt.Errorf("reading what the extension uses: %w", err)
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
