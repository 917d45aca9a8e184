package kind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/lock"
	"github.com/gardener-extensions/registry-cache/kind/mutant"
)

// TestProofBesideOthers: a proof that may not begin leaves the runs of others alone, and what earlier ones have found.
func TestProofBesideOthers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		other func(t *testing.T, testbed *Testbed)
		want  string
	}{
		{"a command", func(t *testing.T, testbed *Testbed) { holdFor(t, testbed.locks.path) }, "e2e.test (process 1 in /there"},
		{"a run of scenarios", func(t *testing.T, testbed *Testbed) { holdFor(t, testbed.locks.run) }, "e2e.test (process 1 in /there"},
		{"a proof", func(t *testing.T, testbed *Testbed) { holdFor(t, testbed.locks.proof) }, "e2e.test (process 1 in /there"},
		{"a testbed of another directory", foreignTestbed, "belongs to /"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			testbed := testbedAside(t)
			found := filepath.Join(testbed.state.mutants(), "none.log")
			results := filepath.Join(testbed.root, "_artifacts", "summary.json")
			writeAll(t, map[string]string{found: "", results: ""})
			tc.other(t, testbed)
			_, err := testbed.ProveScenarios(t.Context(), mutant.All())
			if !errors.As(err, new(*ProofRefused)) || !errors.Is(err, ErrBusy) && !errors.As(err, new(*ForeignError)) || !strings.Contains(err.Error(), tc.want) {
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
	fakeEngine(t, "")
	testbed := testbedAside(t)
	release, err := testbed.beginProof(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	done, err := testbed.locks.reserve()
	if err != nil {
		t.Fatalf("a run of scenarios: %v", err)
	}
	done()
	if _, err := testbed.beginProof(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("a second proof: %v, want ErrBusy", err)
	}
}

// testbedAside is a testbed with locks of its own, in a folder that is no repository.
func testbedAside(t *testing.T) *Testbed {
	t.Helper()
	testbed, err := New(Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	testbed.locks = newLocks(t.TempDir(), testbed.prefix, testbed.root)
	return testbed
}

// holdFor holds a lock as process 1 would, which is there always.
func holdFor(t *testing.T, path string) {
	t.Helper()
	release, err := lock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	writeAll(t, map[string]string{path: `{"pid":1,"command":"e2e.test","directory":"/there"}`})
}

// foreignTestbed lets the testbed of another directory run.
func foreignTestbed(t *testing.T, testbed *Testbed) {
	t.Helper()
	other := state(filepath.Join(t.TempDir(), DefaultDirectory, testbed.prefix))
	writeAll(t, map[string]string{other.seedKubeconfig(): ""})
	fakeEngine(t, filepath.Join(string(other), "audit"))
}

// fakeEngine puts a docker command first on the PATH, of an engine with nothing but the seed of a testbed whose policy for audits comes
// from that folder; without a folder the engine does not run.
func fakeEngine(t *testing.T, audit string) {
	t.Helper()
	script := "#!/bin/sh\nexit 1\n"
	if audit != "" {
		script = `#!/bin/sh
case "$1" in
info) echo '{"ServerVersion":"29.0.0","OSType":"linux"}' ;;
version) echo 1.50 ;;
ps) echo "` + DefaultPrefix + `-seed-control-plane running id" ;;
inspect) echo ` + audit + ` ;;
*) exit 9 ;;
esac
`
	}
	folder := t.TempDir()
	writeAll(t, map[string]string{filepath.Join(folder, "docker"): script})
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}
