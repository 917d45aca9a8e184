package proof

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
	"github.com/gardener-extensions/registry-cache/kind/lock"
)

// TestProofBesideOthers: a proof that may not begin leaves the runs of others alone, and what earlier ones have found.
func TestProofBesideOthers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		other func(t *testing.T, testbed *kind.Testbed, locks string)
		want  string
	}{
		{"a command", func(t *testing.T, _ *kind.Testbed, locks string) { holdFor(t, locks, "testbed") }, "e2e.test (process 1 in /there"},
		{"a run of scenarios", func(t *testing.T, _ *kind.Testbed, locks string) { holdFor(t, locks, "run") }, "e2e.test (process 1 in /there"},
		{"a proof", func(t *testing.T, _ *kind.Testbed, locks string) { holdFor(t, locks, "prove") }, "e2e.test (process 1 in /there"},
		{"a testbed of another directory", func(t *testing.T, testbed *kind.Testbed, _ string) { kindtest.RunElsewhere(t, testbed) }, "belongs to /"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			testbed, locks := testbedAside(t)
			found := filepath.Join(testbed.State.Mutants(), "none.log")
			results := filepath.Join(testbed.Root, "_artifacts", "summary.json")
			writeAll(t, map[string]string{found: "", results: ""})
			tc.other(t, testbed, locks)
			_, err := Prove(t.Context(), testbed, All())
			if !errors.As(err, new(*RefusedError)) || !errors.Is(err, kind.ErrBusy) && !errors.As(err, new(*kind.OtherCheckoutError)) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			for _, path := range []string{found, results} {
				if _, err := os.Stat(path); err != nil {
					t.Errorf("it is gone: %v", err)
				}
			}
		})
	}
}

// TestProofLeavesTheTurnToItsRuns: they are processes of their own, and take the locks of the testbed.
func TestProofLeavesTheTurnToItsRuns(t *testing.T) {
	kindtest.Engine(t, "")
	testbed, _ := testbedAside(t)
	release, err := beginProof(t.Context(), testbed)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	done, err := testbed.Reserve()
	if err != nil {
		t.Fatalf("a run of scenarios: %v", err)
	}
	done()
	if _, err := beginProof(t.Context(), testbed); !errors.Is(err, kind.ErrBusy) {
		t.Errorf("a second proof: %v, want ErrBusy", err)
	}
}

// testbedAside returns a testbed outside of a repository, and the folder of its locks.
func testbedAside(t *testing.T) (testbed *kind.Testbed, locks string) {
	t.Helper()
	locks = t.TempDir()
	return kindtest.New(t, kind.Options{Root: t.TempDir(), Locks: locks}), locks
}

// holdFor holds a lock in the name of process 1, which always runs.
func holdFor(t *testing.T, locks, name string) {
	t.Helper()
	path := filepath.Join(locks, name+"-"+kind.DefaultPrefix+".lock")
	release, err := lock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	writeAll(t, map[string]string{path: `{"pid":1,"command":"e2e.test","directory":"/there"}`})
}
