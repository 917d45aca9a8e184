package plantedbugs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/procfs"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

// TestProveWhileInUse checks that Prove fails while the testbed is in use, and that it does not
// remove the logs and results of earlier runs.
func TestProveWhileInUse(t *testing.T) {
	const holder = "e2e.test (process 1 in /there"
	for _, tc := range []struct {
		name  string
		other func(t *testing.T, testbed *kind.Testbed, locks string)
		want  string
	}{
		{"a command", func(t *testing.T, _ *kind.Testbed, locks string) { holdFor(t, locks, "testbed") }, holder},
		{"a run of scenarios", func(t *testing.T, _ *kind.Testbed, locks string) { holdFor(t, locks, "run") }, holder},
		{"a proof", func(t *testing.T, _ *kind.Testbed, locks string) { holdFor(t, locks, "prove") }, holder},
		{"a testbed of another directory", func(t *testing.T, testbed *kind.Testbed, _ string) { kindtest.RunElsewhere(t, testbed) }, "belongs to /"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			testbed, locks := newTestbed(t)
			found := filepath.Join(testbed.State.Mutants(), "none.log")
			results := filepath.Join(testbed.Root, "_artifacts", "summary.json")
			writeAll(t, map[string]string{found: "", results: ""})
			tc.other(t, testbed, locks)
			_, err := Prove(t.Context(), testbed, All())
			isCause := errors.Is(err, kind.ErrBusy) || errors.As(err, new(*kind.OtherCheckoutError))
			if !errors.As(err, new(*StartError)) || !isCause || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			for _, path := range []string{found, results} {
				if _, err := os.Stat(path); err != nil {
					t.Errorf("removed: %v", err)
				}
			}
		})
	}
}

// TestProofLeavesTestbedUnlocked checks that a proof prevents a second proof, but not the
// scenarios, which run as separate processes and take the locks of the testbed.
func TestProofLeavesTestbedUnlocked(t *testing.T) {
	kindtest.Engine(t, "")
	testbed, _ := newTestbed(t)
	release, err := lockProof(t.Context(), testbed)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	done, err := testbed.Reserve()
	if err != nil {
		t.Fatalf("a run of scenarios: %v", err)
	}
	done()
	if _, err := lockProof(t.Context(), testbed); !errors.Is(err, kind.ErrBusy) {
		t.Errorf("a second proof: %v, want ErrBusy", err)
	}
}

// newTestbed returns a testbed outside of a Git repository, and the folder of its locks.
func newTestbed(t *testing.T) (testbed *kind.Testbed, locks string) {
	t.Helper()
	locks = t.TempDir()
	return kindtest.New(t, kind.Options{Root: t.TempDir(), Locks: locks}), locks
}

// holdFor takes a lock until the test ends. The lock file names process 1, which always runs.
func holdFor(t *testing.T, locks, name string) {
	t.Helper()
	path := filepath.Join(locks, name+"-"+kind.DefaultPrefix+".lock")
	release, err := file.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	process, err := procfs.NewProc(1)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := process.Stat()
	if err != nil {
		t.Fatal(err)
	}
	owner := fmt.Sprintf(`{"pid":1,"started":%d,"command":"e2e.test","directory":"/there"}`, stat.Starttime)
	writeAll(t, map[string]string{path: owner})
}
