package file

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "lock")
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second holder: %v, want ErrLocked", err)
	}
	unlock()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
	unlock, err = TryLock(path)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	unlock()
	if _, err := TryLock(filepath.Join(path, "below-a-file")); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("where no file can be: %v, want another error than ErrLocked", err)
	}
}

func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("at most for the given time", func(t *testing.T) {
		if _, err := Lock(t.Context(), path, time.Millisecond); !errors.Is(err, ErrLocked) {
			t.Errorf("got %v, want ErrLocked", err)
		}
	})
	t.Run("as long as the context lasts", func(t *testing.T) {
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := Lock(ctx, path, time.Minute); !errors.Is(err, why) {
			t.Errorf("got %v, want the cause", err)
		}
	})
	t.Run("until it is free", func(t *testing.T) {
		go unlock()
		got, err := Lock(t.Context(), path, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got()
	})
}

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
		unlock, err := TryLock(path)
		if err != nil {
			t.Error(err)
			break
		}
		unlock()
	}
	close(done)
	starting.Wait()
}
