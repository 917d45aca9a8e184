package contender

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what the processes of a contender use: itself and its children, such as nginx's workers.
type Usage struct {
	CPU  time.Duration // user and system
	Peak uint64        // resident memory since ResetPeak in bytes, the sum of all processes
}

// Usage reads the usage. That of Direct is zero.
func (i *Instance) Usage() (u Usage, err error) {
	err = i.each(func(p procfs.Proc) error {
		status, err := p.NewStatus()
		if err != nil {
			return err
		}
		u.Peak += status.VmHWM
		cpu, err := threadTime(p)
		u.CPU += cpu
		return err
	})
	return u, err
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
			return 0, fmt.Errorf("CPU time of a thread (the kernel needs CONFIG_SCHED_INFO): %w", err)
		}
		total += time.Duration(stat.RunningNanoseconds)
	}
	return total, nil
}

// ResetPeak makes the kernel measure the peak from now on.
func (i *Instance) ResetPeak() error {
	return i.each(func(p procfs.Proc) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID), []byte("5"), 0) // see proc(5)
	})
}

func (i *Instance) each(do func(procfs.Proc) error) error {
	if i.process == nil {
		return nil
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		stat, err := p.Stat()
		if gone(err) || err == nil && p.PID != i.process.PID() && stat.PPID != i.process.PID() {
			continue
		}
		if err == nil {
			err = do(p)
		}
		if err != nil && !gone(err) {
			return fmt.Errorf("process %d: %w", p.PID, err)
		}
	}
	return nil
}

// gone reports whether a process or thread ended while it was read.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
