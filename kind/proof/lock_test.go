package proof

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/lock"
)

// TestProofBesideOthers: a proof that may not begin leaves the runs of others alone, and what earlier ones have found.
func TestProofBesideOthers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		other func(t *testing.T, testbed *kind.Testbed)
		want  string
	}{
		{"a command", func(t *testing.T, testbed *kind.Testbed) { holdFor(t, testbed.Locks.Path) }, "e2e.test (process 1 in /there"},
		{"a run of scenarios", func(t *testing.T, testbed *kind.Testbed) { holdFor(t, testbed.Locks.Run) }, "e2e.test (process 1 in /there"},
		{"a proof", func(t *testing.T, testbed *kind.Testbed) { holdFor(t, testbed.Locks.Proof) }, "e2e.test (process 1 in /there"},
		{"a testbed of another directory", foreignTestbed, "belongs to /"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			testbed := testbedAside(t)
			found := filepath.Join(testbed.State.Mutants(), "none.log")
			results := filepath.Join(testbed.Root, "_artifacts", "summary.json")
			writeAll(t, map[string]string{found: "", results: ""})
			tc.other(t, testbed)
			_, err := Prove(t.Context(), testbed, All())
			if !errors.As(err, new(*RefusedError)) || !errors.Is(err, kind.ErrBusy) && !errors.As(err, new(*kind.ForeignError)) || !strings.Contains(err.Error(), tc.want) {
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
	release, err := beginProof(t.Context(), testbed)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	done, err := testbed.Locks.Reserve()
	if err != nil {
		t.Fatalf("a run of scenarios: %v", err)
	}
	done()
	if _, err := beginProof(t.Context(), testbed); !errors.Is(err, kind.ErrBusy) {
		t.Errorf("a second proof: %v, want ErrBusy", err)
	}
}

// testbedAside is a testbed with locks of its own, in a folder that is no repository.
func testbedAside(t *testing.T) *kind.Testbed {
	t.Helper()
	testbed, err := kind.New(kind.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	testbed.Locks = kind.NewLocks(t.TempDir(), testbed.Prefix, testbed.Root)
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
func foreignTestbed(t *testing.T, testbed *kind.Testbed) {
	t.Helper()
	other := kind.State(filepath.Join(t.TempDir(), kind.DefaultDirectory, testbed.Prefix))
	writeAll(t, map[string]string{other.SeedKubeconfig(): ""})
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
ps) echo "` + kind.DefaultPrefix + `-seed-control-plane running id" ;;
inspect) echo ` + audit + ` ;;
*) exit 9 ;;
esac
`
	}
	folder := t.TempDir()
	writeAll(t, map[string]string{filepath.Join(folder, "docker"): script})
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}
