package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

// onlyList makes a fake docker command fail for anything but docker ps.
const onlyList = "[ \"$1\" = ps ] || exit 9\n"

// TestReleaseAfterDown checks that release creates no lock file after Down has removed the fault.
func TestReleaseAfterDown(t *testing.T) {
	const nodes = `echo "x-control-plane running 1"`
	for _, tc := range []struct {
		name, docker string
		state        bool
		want         error
	}{
		{"down", "exit 0", false, nil},
		{"down, and the engine is stopped", "exit 1", false, nil},
		{"down that could not remove all", "exit 0", true, nil},
		{"state removed by hand", nodes, false, kind.ErrDown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bed := kindtest.Stored(t)
			bed.Seed, bed.Shoot = &cluster.Cluster{}, &cluster.Cluster{}
			if !tc.state {
				if err := os.RemoveAll(string(bed.State)); err != nil {
					t.Fatal(err)
				}
			}
			kindtest.Docker(t, onlyList+tc.docker)
			if err := release(t.Context(), bed, spec.Fault{ID: "f1"}); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			if _, err := os.Stat(filepath.Join(string(bed.State), "faults.lock")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the lock: %v", err)
			}
		})
	}
}

func TestNotRemoved(t *testing.T) {
	for name, docker := range map[string]string{
		"both clusters": `echo "x-control-plane running 1"`, "the shoot": `case "$*" in *-shoot*) echo "x-control-plane exited 1" ;; esac`,
		"the engine does not answer": "exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			bed := kindtest.Stored(t)
			kindtest.Docker(t, onlyList+docker)
			if removed, err := removed(t.Context(), bed); removed || err != nil {
				t.Errorf("removed is %t, %v", removed, err)
			}
		})
	}
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
		{"another command", t.Context(), fmt.Errorf("waited 30s: %w", file.ErrLocked), true},
		{"the context has ended", ended, errors.Join(context.Canceled, file.ErrLocked), false},
		{"disk full", t.Context(), errors.New("no space left on device"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := lockFailure(tc.ctx, "x", tc.err)
			if strings.Contains(got.Error(), "another command changes") != tc.busy || !errors.Is(got, tc.err) {
				t.Errorf("error %q", got)
			}
		})
	}
}
