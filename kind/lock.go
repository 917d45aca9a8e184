package kind

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// lockFiles contains the paths of a prefix's lock files, which all checkouts on the machine share.
// The files are never removed, since all processes must lock the same file.
type lockFiles struct {
	prefix, directory string // directory is the checkout, for the errors of other processes
	// These are the lock files of Lock, Reserve and LockProof, in this order.
	change, reservation, proof string
}

func newLockFiles(locks, prefix, directory string) lockFiles {
	return lockFiles{
		prefix: prefix, directory: directory,
		change: filepath.Join(locks, "testbed-"+prefix+".lock"), reservation: filepath.Join(locks, "run-"+prefix+".lock"),
		proof: filepath.Join(locks, "prove-"+prefix+".lock"),
	}
}

// Reserve keeps other processes, of any checkout, from changing the testbed until release is called
// or this process ends. Their Up, Down, Shoot operations, snapshots and Reserve return ErrBusy.
// Other processes can still apply faults, roll out the extension and build images.
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
	if err := l.checkReservation(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// LockProof keeps other processes from running a proof, see package plantedbugs.
func (l lockFiles) LockProof() (unlock func(), err error) { return l.hold(l.proof) }

// LockHolder returns ": " and a description of the process that works on the testbed, or "".
func (l lockFiles) LockHolder() string {
	return cmp.Or(l.lockOwner(l.change), l.lockOwner(l.reservation))
}

func (l lockFiles) checkReservation() error {
	unlock, err := file.TryLock(l.reservation)
	if err == nil {
		unlock()
		return nil
	}
	if o := readLockOwner(l.reservation); o != nil && o.PID == os.Getpid() && o.runs(startOf) {
		return nil
	}
	return l.explainBusy(err, l.reservation)
}

// hold locks one of the files and writes into it that this process is the owner.
func (l lockFiles) hold(path string) (release func(), err error) {
	release, err = file.TryLock(path)
	if err != nil {
		return nil, l.explainBusy(err, path)
	}
	if err := l.writeOwner(path); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// explainBusy replaces file.ErrLocked with an ErrBusy that names the owner.
func (l lockFiles) explainBusy(err error, path string) error {
	if !errors.Is(err, file.ErrLocked) {
		return err
	}
	return fmt.Errorf("testbed %s: %w%s; wait for it, or stop it", l.prefix, ErrBusy, l.lockOwner(path))
}
