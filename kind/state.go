package kind

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// state is the folder of one testbed: kubeconfigs, the CA and the binaries that its images are made of. It holds
// nothing that Up could not make again.
type state string

func (s state) seedKubeconfig() string  { return filepath.Join(string(s), "seed.kubeconfig") }
func (s state) shootKubeconfig() string { return filepath.Join(string(s), "shoot.kubeconfig") }
func (s state) binaries() string        { return filepath.Join(string(s), "bin") }
func (s state) certificates() string    { return filepath.Join(string(s), "certificates") }

// lockFile stands beside the folder, so that it outlives the removal of the folder by Down.
func (s state) lockFile() string { return string(s) + ".lock" }

// ErrBusy says that another process works on the same testbed.
var ErrBusy = errors.New("another testbed command is working on it")

// lock makes this process the only one that changes the testbed, until the returned function is called or the process
// ends, however it ends. It does not wait: a second command gets ErrBusy.
func (s state) lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(string(s)), 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of the testbed: %w", err)
	}
	file, err := os.OpenFile(s.lockFile(), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the testbed: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("testbed %s: %w; wait for it, or stop it", filepath.Base(string(s)), ErrBusy)
		}
		return nil, fmt.Errorf("lock %s: %w", s.lockFile(), err)
	}
	return func() { _ = file.Close() }, nil
}
