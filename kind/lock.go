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

// lockFiles contains the paths of a prefix's lock files, which all checkouts on the machine share.
// The files are never removed, since all processes must lock the same file.
type lockFiles struct {
	prefix, directory   string // directory is the checkout, for the errors of other processes
	change, reservation string // of Lock and Reserve
}

func newLockFiles(locks, prefix, directory string) lockFiles {
	return lockFiles{
		prefix: prefix, directory: directory,
		change: filepath.Join(locks, "testbed-"+prefix+".lock"), reservation: filepath.Join(locks, "run-"+prefix+".lock"),
	}
}

// Reserve keeps other processes, of any checkout, from changing the testbed until release is called
// or this process ends. Their Up, Down, Shoot operations and Reserve return ErrBusy. Other
// processes can still apply faults, roll out the extension and build images.
func (l lockFiles) Reserve() (release func(), err error) {
	unlock, err := l.hold(l.change)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return l.hold(l.reservation)
}

// Lock prevents changes by other processes until unlock is called or this process ends. If another
// process holds the lock, Lock at once returns an ErrBusy that names that process.
func (l lockFiles) Lock() (unlock func(), err error) {
	unlock, err = l.hold(l.change)
	if err != nil {
		return nil, err
	}
	release, err := l.hold(l.reservation)
	switch {
	case err == nil:
		release()
	case !errors.Is(err, ErrBusy) || holder(l.reservation) != l.describe():
		unlock()
		return nil, err
	}
	return unlock, nil
}

// hold locks one of the files and describes this process in it, for the errors of other processes
// and for Lock. It ignores a full disk, so that Down can run. If the file is locked, hold returns
// an ErrBusy that names the holder.
func (l lockFiles) hold(path string) (release func(), err error) {
	release, err = file.TryLock(path)
	if errors.Is(err, file.ErrLocked) {
		return nil, fmt.Errorf("testbed %s: %w: %s; wait for it, or stop it", l.prefix, ErrBusy, holder(path))
	}
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, []byte(l.describe()), 0o600); err != nil && !errors.Is(err, unix.ENOSPC) {
		release()
		return nil, fmt.Errorf("write the holder of the lock: %w", err)
	}
	return release, nil
}

// describe describes this process.
func (l lockFiles) describe() string {
	command := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	return fmt.Sprintf("%.120s (process %d in %s)", command, os.Getpid(), l.directory)
}

// holder returns the description of the process that holds or last held a lock.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
