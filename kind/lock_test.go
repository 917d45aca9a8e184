package kind

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestLockExcludesASecondCommand(t *testing.T) {
	one := newLock(t.TempDir(), "one", "/here")
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
	here, there := newLock(locks, "one", "/here"), newLock(locks, "one", "/there") // these stand for two processes
	done, err := here.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	release, err := here.Lock()
	if err != nil {
		t.Fatalf("lock in the process that reserved it: %v", err)
	}
	release()
	for name, lock := range map[string]func() (func(), error){"reserve": there.Reserve, "lock": there.Lock} {
		if _, err := lock(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "in /here") {
			t.Errorf("%s while another process has reserved it: %v, want ErrBusy that names the directory", name, err)
		}
	}
	done()
	if release, err = there.Lock(); err != nil {
		t.Fatalf("lock after the reservation: %v", err)
	}
	if _, err := here.Lock(); !errors.Is(err, ErrBusy) {
		t.Errorf("lock after the own reservation: %v, want ErrBusy", err)
	}
	release()
}

// TestCheckoutsShareLocks: cluster names are unique on the machine, so two state folders with the
// same prefix share the lock.
func TestCheckoutsShareLocks(t *testing.T) {
	lockOf := func(prefix string) lock {
		testbed, err := New(Options{Directory: t.TempDir(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return testbed.lock
	}
	if a, b := lockOf("one"), lockOf("one"); a != b {
		t.Errorf("locks %+v and %+v, want the same", a, b)
	}
	seen := map[string]string{"engine.lock": "the engine"}
	for _, prefix := range []string{"one", "engine", "testbed-one"} {
		path := lockOf(prefix).path
		if other, taken := seen[filepath.Base(path)]; taken {
			t.Errorf("lock %s of %s and of %s", path, prefix, other)
		}
		seen[filepath.Base(path)] = prefix
	}
}

func TestBusyTestbedNamesItsHolder(t *testing.T) {
	one := newLock(t.TempDir(), "one", "/here")
	release, err := one.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	want := fmt.Sprintf("testbed one: another testbed command is working on it: %s", filepath.Base(os.Args[0]))
	_, err = one.Lock()
	if !errors.Is(err, ErrBusy) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("(process %d in /here)", os.Getpid())) {
		t.Errorf("error %v, want ErrBusy with %q and this process", err, want)
	}
}

// fullDisk is the environment variable that tells the child process of TestLockOnFullDisk where the
// full file system is.
const fullDisk = "TESTBED_FULL_DISK_FOLDER"

// mountFull mounts a small file system at the folder $1, fills it, and runs the command $2 with the
// arguments after it.
const mountFull = `mount -t tmpfs -o size=8k testbed-test "$1"; dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null; shift; exec "$@"`

// TestLockOnFullDisk: Down takes the lock, so the lock must not need free space. The test runs
// again in a child process with a full disk, and is skipped if this process may not create a mount
// namespace.
func TestLockOnFullDisk(t *testing.T) {
	if folder := os.Getenv(fullDisk); folder != "" {
		one := newLock(folder, "one", "/here")
		release, err := one.Lock()
		if err != nil {
			t.Fatal(err)
		}
		release()
		return
	}
	folder := t.TempDir()
	child := exec.CommandContext(t.Context(), "bash", "-c", mountFull, "bash", folder, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), fullDisk+"="+folder)
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	output, err := child.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Skipf("a mount namespace needs privileges: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
