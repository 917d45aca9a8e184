package lock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "lock")
	unlock, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrBusy) {
		t.Errorf("a second holder: %v, want ErrBusy", err)
	}
	unlock()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
	unlock, err = Try(path)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	unlock()
	if _, err := Try(filepath.Join(path, "below-a-file")); err == nil || errors.Is(err, ErrBusy) {
		t.Errorf("where no file can be: %v, want another error than ErrBusy", err)
	}
}

func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("at most for the given time", func(t *testing.T) {
		if _, err := Wait(t.Context(), path, time.Millisecond); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
	})
	t.Run("as long as the context lasts", func(t *testing.T) {
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := Wait(ctx, path, time.Minute); !errors.Is(err, why) {
			t.Errorf("got %v, want the cause", err)
		}
	})
	t.Run("until it is free", func(t *testing.T) {
		go unlock()
		got, err := Wait(t.Context(), path, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got()
	})
}

func TestShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders []func()
	for range 2 {
		unlock, err := Share(t.Context(), path, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		holders = append(holders, unlock)
	}
	for _, unlock := range holders {
		if _, err := Try(path); !errors.Is(err, ErrBusy) {
			t.Errorf("with a shared holder: %v, want ErrBusy", err)
		}
		unlock()
	}
	unlock, err := Try(path)
	if err != nil {
		t.Fatalf("after the last holder: %v", err)
	}
	defer unlock()
	if _, err := Share(t.Context(), path, time.Millisecond); !errors.Is(err, ErrBusy) {
		t.Errorf("shared with an exclusive holder: %v, want ErrBusy", err)
	}
}
