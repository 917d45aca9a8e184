package kind

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/lock"
	"github.com/gardener-extensions/registry-cache/kind/snapshot"
)

// state is the folder of one testbed: kubeconfigs, certificates, and what the shoot commands have put into the garden. But for the
// latter it holds nothing that Up could not make again. Down removes it.
type state string

func (s state) seedKubeconfig() string  { return filepath.Join(string(s), "seed.kubeconfig") }
func (s state) shootKubeconfig() string { return filepath.Join(string(s), "shoot.kubeconfig") }
func (s state) certificates() string    { return filepath.Join(string(s), "certificates") }
func (s state) garden() string          { return filepath.Join(string(s), "garden.json") }

// wantedConfiguration is what Up was told last, appliedConfiguration what it has brought about: they differ after an interruption.
func (s state) wantedConfiguration() string  { return filepath.Join(string(s), "testbed.yaml") }
func (s state) appliedConfiguration() string { return filepath.Join(string(s), "testbed-applied.yaml") }

// snapshots stands beside the folder too: what somebody has saved outlives Down.
func (s state) snapshots() snapshot.Store { return snapshot.Store(string(s) + ".snapshots") }

// lockPath stands beside the folder, so that it outlives the removal of the folder by Down.
func (s state) lockPath() string { return string(s) + ".lock" }

// ErrBusy says that another process works on the same testbed. It counts as a matter of the environment (internal/program): the
// same command may succeed later.
var ErrBusy = &busyError{}

type busyError struct{}

func (*busyError) Error() string { return "another testbed command is working on it" }

// EnvironmentError marks the error for internal/program.
func (*busyError) EnvironmentError() {}

// buildLockTimeout is how long one testbed waits for another one that builds the same binaries.
const buildLockTimeout = 15 * time.Minute

// lock makes this process the only one that changes the testbed, until the returned function is called or the process
// ends, however it ends. It does not wait: a second command gets ErrBusy, which says who holds it.
func (s state) lock() (unlock func(), err error) {
	unlock, err = lock.Try(s.lockPath())
	if errors.Is(err, lock.ErrBusy) {
		return nil, fmt.Errorf("testbed %s: %w%s; wait for it, or stop it", filepath.Base(string(s)), ErrBusy, s.holder())
	}
	if err != nil {
		return nil, err
	}
	if err := s.signLock(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}
