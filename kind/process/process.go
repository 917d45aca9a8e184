package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// processMark is the environment variable that every process started by Up inherits. A killed Up cannot end its
// children (a Go build, a debootstrap); Down finds them by this mark. The Docker Engine is started without it, since
// other testbeds may use it.
const processMark = "REGISTRY_CACHE_TESTBED"

// leftoverBound is how long a process of ours may take to end after SIGTERM, before it gets SIGKILL.
const leftoverBound = 5 * time.Second

// markProcesses lets the children of this process carry the mark. The mark of a process is what it was started with,
// so this process itself never counts as a leftover.
func Mark(prefix string) error { return os.Setenv(processMark, prefix) }

// endLeftovers ends the processes below procfs that carry the mark of the testbed: SIGTERM first, SIGKILL after
// leftoverBound. It returns how many there were.
func EndMarked(ctx context.Context, procfs, prefix string) (int, error) {
	pids, err := Marked(procfs, prefix)
	if err != nil || len(pids) == 0 {
		return 0, err
	}
	signalAll(pids, unix.SIGTERM)
	gone := func(context.Context) (bool, error) {
		left, err := Marked(procfs, prefix)
		return len(left) == 0, err
	}
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, leftoverBound, true, gone); err == nil {
		return len(pids), nil
	}
	signalAll(pids, unix.SIGKILL)
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, leftoverBound, true, gone); err != nil {
		return len(pids), fmt.Errorf("processes %v of testbed %s still run %s after SIGKILL: %w", pids, prefix, leftoverBound, err)
	}
	return len(pids), nil
}

func signalAll(pids []int, signal unix.Signal) {
	for _, pid := range pids {
		// A process that ended meanwhile is what we want.
		_ = unix.Kill(pid, signal)
	}
}

// markedProcesses lists the processes below procfs whose environment carries the mark with this prefix, without this
// process. Processes that end meanwhile, or whose environment is not ours to read, are passed over.
func Marked(procfs, prefix string) ([]int, error) {
	environments, err := filepath.Glob(filepath.Join(procfs, "[0-9]*", "environ"))
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var pids []int
	for _, path := range environments {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		environment, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the environment of process %d: %w", pid, err)
		}
		if carriesMark(environment, prefix) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// carriesMark tells whether a NUL-separated environment names the testbed.
func carriesMark(environment []byte, prefix string) bool {
	want := []byte(processMark + "=" + prefix)
	for _, variable := range bytes.Split(environment, []byte{0}) {
		if bytes.Equal(variable, want) {
			return true
		}
	}
	return false
}
