package kind

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/fulldisk"
)

func TestBusyTestbedNamesItsOwner(t *testing.T) {
	one := newLockFiles(t.TempDir(), "one", "/here")
	release, err := one.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	want := fmt.Sprintf("testbed one: another testbed command is working on it: %s", filepath.Base(os.Args[0]))
	_, err = one.Lock()
	if !errors.Is(err, ErrBusy) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("(process %d, for ", os.Getpid())) {
		t.Errorf("error %v, want ErrBusy with %q and this process", err, want)
	}
}

func TestDescribeLockOwner(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 42, 0, time.UTC)
	startOf := func(pid int) (uint64, error) {
		if pid != 7 {
			return 0, os.ErrNotExist
		}
		return 4200, nil
	}
	for _, tc := range []struct{ name, data, want string }{
		{"alive", `{"pid":7,"started":4200,"command":"testbed up","since":"2026-11-21T12:00:00Z"}`, ": testbed up (process 7, for 42s)"},
		{"in another directory", `{"pid":7,"started":4200,"command":"testbed up","directory":"/there","since":"2026-11-21T12:00:00Z"}`, ": testbed up (process 7 in /there, for 42s)"},
		{"in this directory", `{"pid":7,"started":4200,"command":"testbed up","directory":"/here","since":"2026-11-21T12:00:00Z"}`, ": testbed up (process 7, for 42s)"},
		{"the process has ended", `{"pid":8,"started":4200,"command":"testbed up","since":"2026-11-21T12:00:00Z"}`, ""},
		{"another process has its PID", `{"pid":7,"started":4100,"command":"testbed up","since":"2026-11-21T12:00:00Z"}`, ""},
		{"without a start time", `{"pid":7,"command":"testbed up","since":"2026-11-21T12:00:00Z"}`, ""},
		{"not written yet", "", ""},
		{"an invalid process ID", `{"pid":-1}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lock := filepath.Join(t.TempDir(), "lock")
			if err := os.WriteFile(lock, []byte(tc.data), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := readLockOwner(lock).describe("/here", now, startOf); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestShorten(t *testing.T) {
	for _, tc := range []struct{ text, want string }{{"abc", "abc"}, {"abcd", "abcd"}, {"abcde", "abcd…"}, {"abcü", "abc…"}} {
		if got := shorten(tc.text, 4); got != tc.want {
			t.Errorf("shorten(%q) = %q, want %q", tc.text, got, tc.want)
		}
	}
}

// TestLockOnFullDisk: Down takes the lock, so the lock must not need free space.
func TestLockOnFullDisk(t *testing.T) {
	folder := fulldisk.Folder()
	if folder == "" {
		fulldisk.Run(t)
		return
	}
	release, err := newLockFiles(folder, "one", "/here").Lock()
	if err != nil {
		t.Fatal(err)
	}
	release()
}
