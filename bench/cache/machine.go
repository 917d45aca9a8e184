package cache

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/bench"
)

// Machine describes the machine of a run.
type Machine struct {
	bench.Machine
	// SHA256PerGB is the CPU time of one pass, in seconds per GB.
	SHA256PerGB float64 `json:"sha256SecondsPerGB"`
}

// readMachine describes this machine. It measures SHA-256 for about a second.
func readMachine() (m Machine, err error) {
	if m.Machine, err = bench.ReadMachine(); err == nil {
		m.SHA256PerGB, err = measureSHA256()
	}
	return m, err
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
