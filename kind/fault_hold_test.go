package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/lock"
)

// TestReleaseOfAFaultThatWentWithTheTestbed is about what Down leaves to a command that holds a fault.
func TestReleaseOfAFaultThatWentWithTheTestbed(t *testing.T) {
	const nodes = `echo "x-control-plane running 1"`
	for _, tc := range []struct {
		name, docker string
		state        bool
		want         error
	}{
		{"down", "exit 0", false, nil},
		{"down, and the engine is stopped", "exit 1", false, nil},
		{"down that could not remove all", "exit 0", true, nil},
		{"state removed by hand", nodes, false, ErrDown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bed := stored(t)
			bed.seed, bed.shoot = &cluster.Cluster{}, &cluster.Cluster{}
			if !tc.state {
				if err := bed.removeState(); err != nil {
					t.Fatal(err)
				}
			}
			fakeDocker(t, tc.docker)
			if err := bed.release(t.Context(), fault.Fault{ID: "f1"}); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			if _, err := os.Stat(filepath.Join(string(bed.state), "faults.lock")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the lock: %v", err)
			}
		})
	}
}

func TestRemovedIsNotWhatMayBeThere(t *testing.T) {
	for name, docker := range map[string]string{
		"both clusters": `echo "x-control-plane running 1"`, "the shoot": `case "$*" in *-shoot*) echo "x-control-plane exited 1" ;; esac`,
		"the engine does not answer": "exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			bed := stored(t)
			fakeDocker(t, docker)
			if removed, err := bed.removed(t.Context()); removed || err != nil {
				t.Errorf("removed is %t, %v", removed, err)
			}
		})
	}
}

// fakeDocker puts a docker command first on the PATH that answers docker ps by the script.
func fakeDocker(t *testing.T, ps string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = ps ] || exit 9\n" + ps + "\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestLockFailure(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		err  error
		busy bool
	}{
		{"another command", t.Context(), fmt.Errorf("waited 30s: %w", lock.ErrBusy), true},
		{"the caller's time is over", ended, errors.Join(context.Canceled, lock.ErrBusy), false},
		{"no room", t.Context(), errors.New("no space left on device"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := lockFailure(tc.ctx, "x", tc.err)
			if strings.Contains(got.Error(), "another command works") != tc.busy || !errors.Is(got, tc.err) {
				t.Errorf("it says %q", got)
			}
		})
	}
}
