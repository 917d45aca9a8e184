package lock

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestUnlockWhileProgramsStart checks that unlock releases the lock even while this process starts
// programs: between fork and exec, a child process shares all open files of this process.
func TestUnlockWhileProgramsStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	done := make(chan struct{})
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.CommandContext(t.Context(), "true").Run()
				}
			}
		})
	}
	for range 1000 {
		unlock, err := Try(path)
		if err != nil {
			t.Error(err)
			break
		}
		unlock()
	}
	close(done)
	starting.Wait()
}
