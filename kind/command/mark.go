package command

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// markVariable is the environment variable that children of testbed commands inherit. A killed
// command cannot end its children, such as mmdebstrap, so `testbed down` finds them by this
// variable. The Docker Engine is started without it, since other testbeds may use the engine.
const markVariable = "REGISTRY_CACHE_TESTBED"

// killTimeout is the time from SIGTERM to SIGKILL, and from SIGKILL until EndMarked gives up.
const killTimeout = 5 * time.Second

// MarkChildren marks the future children of this process with the testbed's prefix. It does not
// mark this process, since procfs shows the environment that a process was started with.
func MarkChildren(prefix string) error { return os.Setenv(markVariable, prefix) }

// Unmarked returns environ without the mark, for a child that `testbed down` must not end.
func Unmarked(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, markVariable+"=")
	})
}

// EndMarked ends the processes that are marked with the prefix: with SIGTERM, and with SIGKILL if
// they still run after killTimeout. It returns the number of marked processes.
func EndMarked(ctx context.Context, prefix string) (int, error) {
	pids, err := Marked(prefix)
	if err != nil || len(pids) == 0 {
		return 0, err
	}
	gone := func(context.Context) (bool, error) {
		left, err := Marked(prefix)
		return len(left) == 0, err
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		for _, pid := range pids {
			_ = unix.Kill(pid, signal) // an error means that the process has ended
		}
		if err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, killTimeout, true, gone); err == nil {
			return len(pids), nil
		}
	}
	return len(pids), fmt.Errorf("processes %v of testbed %s still run %s after SIGKILL: %w", pids, prefix, killTimeout, err)
}

// Marked returns the IDs of the processes that are marked with the prefix, except this one. It
// skips processes whose environment cannot be read.
func Marked(prefix string) ([]int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var pids []int
	for _, process := range processes {
		environment, _ := process.Environ() // an error can also mean that the process has ended
		if process.PID != os.Getpid() && slices.Contains(environment, markVariable+"="+prefix) {
			pids = append(pids, process.PID)
		}
	}
	return pids, nil
}
