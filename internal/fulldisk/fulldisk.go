package fulldisk

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// folderVariable tells the child process where the full file system is.
const folderVariable = "TESTBED_FULL_DISK_FOLDER"

// mountFull mounts a small file system at the folder $1, fills it, and runs the command in
// $2 and the following arguments.
const mountFull = `mount -t tmpfs -o size=8k testbed-test "$1"; dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null; shift; exec "$@"`

// Folder returns the mount point of the full file system in the child process of Run, otherwise "".
func Folder() string { return os.Getenv(folderVariable) }

// Run reruns the calling test in a child process whose Folder is full. The test fails if the child
// process fails, and is skipped if this process may not create a mount namespace.
func Run(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	child := exec.CommandContext(t.Context(), "bash", "-c", mountFull, "bash", folder,
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), folderVariable+"="+folder)
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	output, err := child.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Skipf("a mount namespace needs privileges: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
