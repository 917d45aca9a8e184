package kind

import (
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/fulldisk"
)

// TestLockOnFullDisk: Down takes the lock, so the lock must not need free space.
func TestLockOnFullDisk(t *testing.T) {
	folder := fulldisk.Folder()
	if folder == "" {
		fulldisk.Run(t)
		return
	}
	release, err := newLockFiles(folder, "one", "/here").take()
	if err != nil {
		t.Fatal(err)
	}
	release()
}
