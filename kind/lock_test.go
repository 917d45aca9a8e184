package kind

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLockExcludesASecondCommand(t *testing.T) {
	one := newLockFiles(t.TempDir(), "one", "/here")
	release, err := one.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Lock(); !errors.Is(err, ErrBusy) {
		t.Errorf("second lock: %v, want ErrBusy", err)
	}
	if _, err := one.Reserve(); !errors.Is(err, ErrBusy) {
		t.Errorf("reserve while it is locked: %v, want ErrBusy", err)
	}
	release()
	release, err = one.Lock()
	if err != nil {
		t.Fatalf("lock after it was released: %v", err)
	}
	release()
}

func TestReservedTestbed(t *testing.T) {
	locks := t.TempDir()
	here, there := newLockFiles(locks, "one", "/here"), newLockFiles(locks, "one", "/there")
	done, err := here.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	release, err := here.Lock()
	if err != nil {
		t.Fatalf("lock in the process that reserved it: %v", err)
	}
	release()
	if _, err := there.Reserve(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "in /here") {
		t.Errorf("reserved twice: %v, want ErrBusy that names the directory", err)
	}
	// Write the file as another process would. Process 1 always exists.
	started, err := startOf(1)
	if err != nil {
		t.Fatal(err)
	}
	writeLockOwner(t, here.reservation, lockOwner{PID: 1, Started: started, Command: "e2e.test", Directory: "/here"})
	if _, err := there.Lock(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "e2e.test") {
		t.Errorf("lock while another process has reserved it: %v, want ErrBusy that names it", err)
	}
	// The file describes a process that has ended. This process now has that process's PID.
	writeLockOwner(t, here.reservation, lockOwner{PID: os.Getpid(), Started: 1, Command: "old.test"})
	if _, err := there.Lock(); !errors.Is(err, ErrBusy) || strings.Contains(err.Error(), "old.test") {
		t.Errorf("lock while an unknown process has reserved it: %v, want ErrBusy that names no process", err)
	}
	done()
	if release, err = there.Lock(); err != nil {
		t.Fatalf("lock after the reservation: %v", err)
	}
	release()
}

func writeLockOwner(t *testing.T, path string, owner lockOwner) {
	t.Helper()
	data, err := json.Marshal(owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCheckoutsShareLocks: cluster names are unique on the machine, so two state folders of one
// prefix share the locks.
func TestCheckoutsShareLocks(t *testing.T) {
	locksOf := func(prefix string) lockFiles {
		testbed, err := New(Options{Directory: t.TempDir(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return testbed.lockFiles
	}
	if a, b := locksOf("one"), locksOf("one"); a != b {
		t.Errorf("locks %+v and %+v, want the same", a, b)
	}
	seen := map[string]string{"engine.lock": "the engine"}
	for _, prefix := range []string{"one", "engine", "run", "prove", "one-run", "testbed-one", "prove-one"} {
		for _, path := range []string{locksOf(prefix).change, locksOf(prefix).reservation} {
			if other, taken := seen[filepath.Base(path)]; taken {
				t.Errorf("lock %s of %s and of %s", path, prefix, other)
			}
			seen[filepath.Base(path)] = prefix
		}
	}
}
