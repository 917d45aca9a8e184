package bench

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/gardener-extensions/registry-cache/bench/report"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
)

// Machine describes where this process runs.
func Machine() (report.Machine, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return report.Machine{}, fmt.Errorf("reading /proc: %w", err)
	}
	memory, err := fs.Meminfo()
	if err != nil {
		return report.Machine{}, fmt.Errorf("reading the size of the memory: %w", err)
	}
	machine := report.Machine{CPUs: runtime.NumCPU(), Go: strings.TrimSpace(runtime.Version()), Kubernetes: nodeimage.KubernetesVersion}
	if memory.MemTotalBytes != nil {
		machine.MemoryBytes = *memory.MemTotalBytes
	}
	return machine, nil
}

// loadAverage is that of the last minute.
func loadAverage() (float64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("reading /proc: %w", err)
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return 0, fmt.Errorf("reading the load average: %w", err)
	}
	return load.Load1, nil
}
