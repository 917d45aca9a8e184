package kind

import (
	"os"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/bringup"
)

const fullDiskFolder = "TESTBED_FULL_DISK_FOLDER"

// fillUp gives the folder $1 a small disk without room, and runs the rest of its arguments.
const fillUp = `mount -t tmpfs -o size=8k testbed-test "$1"; dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null; shift; exec "$@"`

// TestLockOnFullDisk: Down takes the lock, and needs no room for it. It runs itself where it has a disk of its own.
func TestLockOnFullDisk(t *testing.T) {
	if folder := os.Getenv(fullDiskFolder); folder != "" {
		release, err := NewLocks(folder, "one", "/here").take()
		if err != nil {
			t.Fatal(err)
		}
		release()
		return
	}
	bringup.onFullDisk(t)
}
