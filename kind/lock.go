package kind

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/lock"
)

// lockFiles are the right to change the testbed of a prefix. It is one of the machine, as are the names of clusters, containers and
// processes: checkouts of the repository share it.
type lockFiles struct {
	prefix string
	// directory is from where the testbed is changed, for the message of the next one.
	directory string
	// path is the file with the lock of whoever changes the testbed, run that of whoever keeps it for a whole run, proof that of
	// ProveScenarios, whose runs take the other two. They are never removed: who waits to open one must find the same file.
	path, run, proof string
}

func newLockFiles(locks, prefix, directory string) lockFiles {
	return lockFiles{
		prefix: prefix, directory: directory,
		path: filepath.Join(locks, "testbed-"+prefix+".lock"), run: filepath.Join(locks, "run-"+prefix+".lock"),
		proof: filepath.Join(locks, "prove-"+prefix+".lock"),
	}
}

// ErrBusy says that another process works on the same testbed. It counts as a matter of the environment (internal/program): the
// same command may succeed later.
var ErrBusy = &busyError{}

type busyError struct{}

func (*busyError) Error() string { return "another testbed command is working on it" }

// EnvironmentError marks the error for internal/program.
func (*busyError) EnvironmentError() {}

// Reserve keeps other processes from Up, Down, verbs of the Shoot and snapshots until the returned function is called or this process
// ends, however it ends: they get ErrBusy, from whatever directory. Faults, roll-outs and images are not kept out: a run starts
// processes of its own that need them. What this process does is not hindered. Who reserves it second gets ErrBusy too.
func (t *Testbed) Reserve() (release func(), err error) { return t.locks.reserve() }

// Lock makes this process the only one that changes the testbed, until unlock is called or the
// process ends. It does not wait: while another process holds it, the error is an ErrBusy that
// names that process.
func (t *Testbed) Lock() (unlock func(), err error) { return t.locks.take() }

// LockProof keeps other proofs of the scenarios away, see package proof. It does not wait, and it
// leaves Lock and Reserve to the runs of the proof.
func (t *Testbed) LockProof() (unlock func(), err error) { return t.locks.hold(t.locks.proof) }

// LockHolder describes the process that works on the testbed, after a colon; empty if none does.
func (t *Testbed) LockHolder() string {
	return cmp.Or(t.locks.holder(t.locks.path), t.locks.holder(t.locks.run))
}

func (t lockFiles) reserve() (release func(), err error) {
	done, err := t.hold(t.path)
	if err != nil {
		return nil, err
	}
	defer done()
	return t.hold(t.run)
}

// take makes this process the only one that changes the testbed, until the returned function is called or the process
// ends, however it ends. It does not wait: a second command gets ErrBusy, which says who holds it.
func (t lockFiles) take() (release func(), err error) {
	release, err = t.hold(t.path)
	if err != nil {
		return nil, err
	}
	if err := t.checkRun(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkRun says whether another process has reserved the testbed.
func (t lockFiles) checkRun() error {
	free, err := lock.Try(t.run)
	if err == nil {
		free()
		return nil
	}
	if h := readHolder(t.run); h != nil && h.PID == os.Getpid() {
		return nil
	}
	return t.explain(err, t.run)
}

// hold takes one of the locks and signs it.
func (t lockFiles) hold(path string) (release func(), err error) {
	release, err = lock.Try(path)
	if err != nil {
		return nil, t.explain(err, path)
	}
	if err := t.sign(path); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// explain makes of a lock that is held an ErrBusy that says by whom.
func (t lockFiles) explain(err error, path string) error {
	if !errors.Is(err, lock.ErrBusy) {
		return err
	}
	return fmt.Errorf("testbed %s: %w%s; wait for it, or stop it", t.prefix, ErrBusy, t.holder(path))
}
