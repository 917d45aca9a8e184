package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	directoryName = "registry-cache-testbed"
	pollInterval  = 200 * time.Millisecond
)

// ErrLocked reports that another process holds the lock.
var ErrLocked = errors.New("another process holds the lock")

// LockDirectory returns the directory for locks, which all testbeds of a user share. Users need no
// common directory, since only root can change the host.
func LockDirectory() string {
	if os.Geteuid() == 0 {
		return filepath.Join("/run", directoryName)
	}
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		return filepath.Join(runtime, directoryName)
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", directoryName, os.Getuid()))
}

// TryLock acquires the lock file at path, or returns ErrLocked at once. It creates a missing file
// and its directory. It never removes the file, since all processes must lock the same file.
func TryLock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the directory of the lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() {
		// Closing is not enough: between fork and exec, another goroutine's child has the file open.
		_ = unix.Flock(int(file.Fd()), unix.LOCK_UN)
		_ = file.Close()
	}, nil
}

// Lock is like TryLock, but retries until timeout or until ctx ends. Use it for locks of short
// tasks.
func Lock(ctx context.Context, path string, timeout time.Duration) (unlock func(), err error) {
	tooLate := time.After(timeout)
	for {
		if unlock, err = TryLock(path); !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-tooLate:
			return nil, fmt.Errorf("waited %s: %w", timeout, err)
		case <-time.After(pollInterval):
		}
	}
}
