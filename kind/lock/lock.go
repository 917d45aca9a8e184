package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	directoryName = "registry-cache-testbed"
	pollInterval  = 200 * time.Millisecond
)

// ErrBusy reports that another process holds the lock.
var ErrBusy = errors.New("another process holds the lock")

// Directory returns the directory for locks, which all testbeds of a user share. Users need no
// common directory, since only root can change the host.
func Directory() string {
	if os.Geteuid() == 0 {
		return filepath.Join("/run", directoryName)
	}
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		return filepath.Join(runtime, directoryName)
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", directoryName, os.Getuid()))
}

// Try acquires the lock file at path, or returns ErrBusy at once. It creates a missing file and its
// directory. It never removes the file, since all processes must lock the same file.
func Try(path string) (unlock func(), err error) { return try(path, unix.LOCK_EX) }

// Wait is like Try, but retries until timeout or until ctx ends. Use it for locks of short tasks.
func Wait(ctx context.Context, path string, timeout time.Duration) (unlock func(), err error) {
	return poll(ctx, path, timeout, unix.LOCK_EX)
}

// Share is like Wait, but several processes can share the lock. Try and Wait fail while they do.
func Share(ctx context.Context, path string, timeout time.Duration) (unlock func(), err error) {
	return poll(ctx, path, timeout, unix.LOCK_SH)
}

func try(path string, how int) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the directory of the lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, ErrBusy)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() {
		// Closing is not enough: between fork and exec, another goroutine's child has the file open.
		_ = unix.Flock(int(file.Fd()), unix.LOCK_UN)
		_ = file.Close()
	}, nil
}

func poll(ctx context.Context, path string, timeout time.Duration, how int) (unlock func(), err error) {
	waitErr := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(context.Context) (bool, error) {
		unlock, err = try(path, how)
		if errors.Is(err, ErrBusy) {
			return false, nil
		}
		return err == nil, err
	})
	switch {
	case waitErr == nil:
		return unlock, nil
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), err)
	case errors.Is(err, ErrBusy):
		return nil, fmt.Errorf("waited %s: %w", timeout, err)
	}
	return nil, waitErr
}
