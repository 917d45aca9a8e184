package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// ticks is USER_HZ, the unit of the counters in /proc on every Linux architecture that Go supports.
const ticks = 100

// kernelThread is the flag PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x00200000

// endedSuffix follows a component's name in the entry for the CPU time of its ended children.
const endedSuffix = ": ended children"

type process struct {
	component string
	parent    int
	// started is the start time. The start time and the PID identify the process.
	started uint64
	// own and children are the CPU seconds of the process and of ended children it has waited for.
	own, children float64
}

type reading struct {
	busy      float64 // CPU seconds of the machine since boot, without idle time
	processes map[int]process
}

// read reads the counters of the machine from /proc.
func read() (reading, error) {
	var stat procfs.Stat
	all, err := procfs.NewDefaultFS()
	if err == nil {
		stat, err = all.Stat()
	}
	if err != nil {
		return reading{}, fmt.Errorf("read the CPU time of the machine: %w", err)
	}
	cpu := stat.CPUTotal
	result := reading{busy: cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ, processes: map[int]process{}}
	list, err := all.AllProcs()
	if err != nil {
		return reading{}, fmt.Errorf("list the processes: %w", err)
	}
	for _, one := range list {
		stat, err := one.Stat()
		if hidden(err) {
			continue
		}
		if err != nil {
			return reading{}, fmt.Errorf("read the CPU time of process %d: %w", one.PID, err)
		}
		argv, _ := one.CmdLine() // empty for a kernel thread or an ended process
		result.processes[one.PID] = process{
			component: componentOf(stat, argv), parent: stat.PPID, started: stat.Starttime,
			own: float64(stat.UTime+stat.STime) / ticks, children: float64(stat.CUTime+stat.CSTime) / ticks,
		}
	}
	return result, nil
}

// hidden reports whether a process could not be read because it has ended in the meantime, or
// because /proc hides it (mount option hidepid). Such a process is part of "everything else".
func hidden(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrPermission)
}

// componentOf returns the name of the program. Comm is the kernel's name for the process, cut to 15
// bytes. The shims of Docker and of nodes are different components.
func componentOf(stat procfs.ProcStat, argv []string) string {
	if stat.Flags&kernelThread != 0 {
		return "kernel threads"
	}
	if len(argv) == 0 { // the process has ended, and its parent has not waited for it yet
		return stat.Comm
	}
	name := path.Base(argv[0])
	if !strings.HasPrefix(name, stat.Comm) { // a script, or a process that has changed its title
		name = stat.Comm
	}
	switch {
	case strings.HasPrefix(name, "containerd-shim") && slices.Contains(argv, "moby"):
		return "shim of Docker"
	case strings.HasPrefix(name, "containerd-shim"):
		return "shim on a node"
	case name == "registry-cache" && len(argv) > 1:
		return name + " " + argv[1]
	}
	return name
}

// secondsByComponent returns the CPU seconds of each component between two readings.
func secondsByComponent(before, after map[int]process) map[string]float64 {
	// When a parent waits for a child, the kernel adds all CPU time of the child to the parent's
	// counter for children. Subtract the part that was already counted while the child ran.
	counted := map[int]float64{}
	for pid, was := range before {
		if now, ok := after[pid]; !ok || now.started != was.started {
			counted[was.parent] += was.own + was.children
		}
	}
	result := map[string]float64{}
	for pid, now := range after {
		was := before[pid]
		if was.started != now.started {
			was = process{}
		}
		result[now.component] += max(0, now.own-was.own)
		result[now.component+endedSuffix] += max(0, now.children-was.children-counted[pid])
	}
	return result
}
