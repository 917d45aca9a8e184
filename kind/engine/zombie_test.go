package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestProcessThatNobodyWaitedFor is about init processes of containers that do not reap: a killed dockerd keeps its ID.
func TestProcessThatNobodyWaitedFor(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Wait() })
	file := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(file, fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := processBecomes(t, file, child.Process.Pid); got != child.Process.Pid {
		t.Errorf("a living process: got %d", got)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := processBecomes(t, file, 0); got != 0 {
		t.Errorf("a dead process that nobody has waited for: got %d", got)
	}
}

// processBecomes asks until the answer is the wanted one, for a minute at most: the kernel takes a moment to start or kill.
func processBecomes(t *testing.T, file string, want int) int {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := process(file, "sleep")
		if err != nil {
			t.Fatal(err)
		}
		if got == want {
			return got
		}
		select {
		case <-deadline:
			return got
		case <-tick.C:
		}
	}
}
