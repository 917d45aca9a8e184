package bench

import (
	"fmt"
	"runtime"

	"github.com/prometheus/procfs"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
)

// ReadMachine describes this machine.
func ReadMachine() (Machine, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return Machine{}, fmt.Errorf("reading /proc: %w", err)
	}
	memory, err := fs.Meminfo()
	if err != nil {
		return Machine{}, fmt.Errorf("reading the size of the memory: %w", err)
	}
	machine := Machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), Kubernetes: nodeimage.KubernetesVersion}
	if memory.MemTotalBytes != nil {
		machine.MemoryBytes = *memory.MemTotalBytes
	}
	return machine, nil
}

// loadAverage returns that of the last minute.
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
