package lock

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestUnlockedBesidePrograms: a program that is being started has all files of this process until it is one of its own.
func TestUnlockedBesidePrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	over := make(chan struct{})
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-over:
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
	close(over)
	starting.Wait()
}
