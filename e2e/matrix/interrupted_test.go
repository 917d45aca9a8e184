package matrix

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInterrupted: after Ctrl-C no other testbed starts, and the current one is removed unless KEEP
// is set.
func TestInterrupted(t *testing.T) {
	for keep, want := range map[string][]string{"": {"scenarios", "testbed down"}, "1": {"scenarios"}} {
		t.Run("KEEP="+keep, func(t *testing.T) {
			folder := t.TempDir()
			log := filepath.Join(folder, "log")
			writeProgram(t, filepath.Join(folder, "e2e/matrix/run"), readFile(t, "run"))
			writeProgram(t, filepath.Join(folder, "bin/e2e.test"), "#!/bin/sh\necho scenarios >>"+log+"\nkill -TERM $PPID\nexit 1\n")
			writeProgram(t, filepath.Join(folder, "bin/testbed"), "#!/bin/sh\necho \"testbed $*\" >>"+log+"\n")
			for _, name := range []string{"iptables", "ipv6"} {
				writeProgram(t, filepath.Join(folder, "e2e/matrix", name+".yaml"), "# scenarios: ^(join)$\n")
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "e2e/matrix/run"))
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "KEEP=" + keep, "MATRIX=^(iptables|ipv6)$"}
			output, err := cmd.CombinedOutput()
			if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 130 {
				t.Errorf("error %v, want exit code 130: %s", err, output)
			}
			if ran := strings.Split(strings.TrimSpace(readFile(t, log)), "\n"); !slices.Equal(ran, want) {
				t.Errorf("the script ran %q, want %q", ran, want)
			}
		})
	}
}

// TestArguments: the script runs the files that its arguments name, and no others. It keeps the
// testbed until the last one.
func TestArguments(t *testing.T) {
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	writeProgram(t, filepath.Join(folder, "e2e/matrix/run"), readFile(t, "run"))
	writeProgram(t, filepath.Join(folder, "bin/e2e.test"), "#!/bin/sh\necho \"$CONFIG $KEEP $RUN\" >>"+log+"\n")
	for _, name := range []string{"iptables", "versions/a", "versions/b"} {
		writeProgram(t, filepath.Join(folder, "e2e/matrix", name+".yaml"), "# scenarios: ^(join)$\n")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "e2e/matrix/run"), "versions/a", "versions/b")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	const want = "e2e/matrix/versions/a.yaml 1 ^(join)$\ne2e/matrix/versions/b.yaml 0 ^(join)$\n"
	if ran := readFile(t, log); ran != want {
		t.Errorf("the script ran\n%swant\n%s", ran, want)
	}
}

func writeProgram(t *testing.T, path, script string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
}
