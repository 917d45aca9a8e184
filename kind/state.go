package kind

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

// state is the folder of one testbed: kubeconfigs and certificates. It holds nothing that Up could not make again, and
// Down removes it.
type state string

func (s state) seedKubeconfig() string  { return filepath.Join(string(s), "seed.kubeconfig") }
func (s state) shootKubeconfig() string { return filepath.Join(string(s), "shoot.kubeconfig") }
func (s state) certificates() string    { return filepath.Join(string(s), "certificates") }

// lockPath stands beside the folder, so that it outlives the removal of the folder by Down.
func (s state) lockPath() string { return string(s) + ".lock" }

// ErrBusy says that another process works on the same testbed.
var ErrBusy = errors.New("another testbed command is working on it")

// lock makes this process the only one that changes the testbed, until the returned function is called or the process
// ends, however it ends. It does not wait: a second command gets ErrBusy.
func (s state) lock() (unlock func(), err error) {
	unlock, err = lockFile(s.lockPath())
	if errors.Is(err, ErrBusy) {
		return nil, fmt.Errorf("testbed %s: %w; wait for it, or stop it", filepath.Base(string(s)), ErrBusy)
	}
	return unlock, err
}

// lockFile takes the lock that a file stands for, or returns ErrBusy.
func lockFile(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of the lock: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

// lockTimeout is how long one testbed waits for another one that builds the same binaries.
const lockTimeout = 15 * time.Minute

// waitForLock is lockFile for work that ends by itself: it waits its turn.
func waitForLock(ctx context.Context, path string) (unlock func(), err error) {
	busy := func(ctx context.Context) (bool, error) {
		unlock, err = lockFile(path)
		if errors.Is(err, ErrBusy) {
			return false, nil
		}
		return err == nil, err
	}
	if waitErr := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, lockTimeout, true, busy); waitErr != nil {
		return nil, fmt.Errorf("no lock on %s in %s: %w", path, lockTimeout, errors.Join(waitErr, err))
	}
	return unlock, nil
}
