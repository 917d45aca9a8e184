package kind

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const fullDiskFolder = "TESTBED_FULL_DISK_FOLDER"

// fillUp gives the folder $1 a small disk without room, and runs the rest of its arguments.
const fillUp = `mount -t tmpfs -o size=8k testbed-test "$1"; dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null; shift; exec "$@"`

// TestLockOnFullDisk: Down takes the lock, and needs no room for it. It runs itself where it has a disk of its own.
func TestLockOnFullDisk(t *testing.T) {
	if folder := os.Getenv(fullDiskFolder); folder != "" {
		unlock, err := state(filepath.Join(folder, "one")).lock()
		if err != nil {
			t.Fatal(err)
		}
		unlock()
		return
	}
	folder := t.TempDir()
	child := exec.CommandContext(t.Context(), "bash", "-c", fillUp, "bash", folder, os.Args[0], "-test.run=^TestLockOnFullDisk$", "-test.v")
	child.Env = append(os.Environ(), fullDiskFolder+"="+folder)
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	output, err := child.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Skipf("a disk of its own needs privileges: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
