package kind

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// lock is the lock file of a prefix, which all checkouts on the machine share. The file is never
// removed, since all processes must lock the same file.
type lock struct {
	path, prefix, directory string // directory is the checkout, which the errors of other processes name
	reserved                bool
}

func newLock(locks, prefix, directory string) lock {
	return lock{path: filepath.Join(locks, "testbed-"+prefix+".lock"), prefix: prefix, directory: directory}
}

// Reserve keeps other processes, of any checkout, from changing the testbed until release is called
// or this process ends. Their Up, Down, Shoot operations and Reserve return ErrBusy. Other
// processes can still apply faults, roll out the extension and build images.
func (l *lock) Reserve() (release func(), err error) {
	unlock, err := l.Lock()
	if err != nil {
		return nil, err
	}
	l.reserved = true
	return func() { l.reserved = false; unlock() }, nil
}

// Lock prevents changes by other processes until unlock is called or this process ends. It does
// nothing after Reserve. If another process holds the lock, Lock immediately returns an error that
// wraps ErrBusy and names that process. It ignores a full disk, so that Down can run.
func (l *lock) Lock() (unlock func(), err error) {
	if l.reserved {
		return func() {}, nil
	}
	unlock, err = file.TryLock(l.path)
	if errors.Is(err, file.ErrLocked) {
		return nil, fmt.Errorf("testbed %s: %w: %s; wait for it, or stop it", l.prefix, ErrBusy, holder(l.path))
	}
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(l.path, []byte(l.describe()), 0o600); err != nil && !errors.Is(err, unix.ENOSPC) {
		unlock()
		return nil, fmt.Errorf("write the holder of the lock: %w", err)
	}
	return unlock, nil
}

// describe returns this process's command, ID and checkout.
func (l *lock) describe() string {
	command := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	return fmt.Sprintf("%.120s (process %d in %s)", command, os.Getpid(), l.directory)
}

// holder reads from the lock file at path which process holds the lock or held it last.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
