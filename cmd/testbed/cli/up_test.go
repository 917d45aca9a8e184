package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

const testbedHeader = "apiVersion: testbed.registry.extensions.gardener.cloud/v1alpha1\nkind: Testbed\n"

// nobodys is the prefix of a testbed that nobody has: what one that runs was told must not come in.
const nobodys = "nobodys-testbed"

func TestWrongUseOfUp(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, "shoot.yaml")
	if err := os.WriteFile(broken, []byte("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nspec: {purposes: testing}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, stdin, file, want string
	}{
		{"a file that is not there", "", filepath.Join(folder, "missing.yaml"), "no such file"},
		{"nothing", "", "-", "standard input: empty"},
		{"a mistake", testbedHeader + "shoot: {workers: 9}\n", "-", "standard input: shoot.workers: Invalid value: 9"},
		{"a field that there is not", testbedHeader + "worker: 2\n", "-", `unknown field "worker"`},
		{"a manifest that is not there", testbedHeader + "shoot: {manifest: " + folder + "/no.yaml}\n", "-", "shoot.manifest: "},
		{"a manifest with a mistake", testbedHeader + "shoot: {manifest: " + broken + "}\n", "-", `unknown field "spec.purposes"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, stderr := run(t, tc.stdin, "up", "--prefix", nobodys, "-f", tc.file)
			if code != program.ExitUsage || !strings.Contains(stderr, tc.want) || out != "" {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d and %q", code, out, stderr, program.ExitUsage, tc.want)
			}
		})
	}
}

// TestDryRunOfUp: the answer is a file that says the same, with all defaults.
func TestDryRunOfUp(t *testing.T) {
	code, out, stderr := run(t, testbedHeader+"shoot: {ipFamily: ipv6}\n", "up", "--prefix", nobodys, "--dry-run", "-f", "-")
	if code != program.ExitFine || stderr != "" || !strings.Contains(out, "ipFamily: ipv6\n") || !strings.Contains(out, "workers: 2\n") {
		t.Errorf("exit code %d, standard output\n%s\nstandard error %q", code, out, stderr)
	}
	again, same, _ := run(t, out, "up", "--prefix", nobodys, "--dry-run", "-f", "-")
	if again != program.ExitFine || same != out {
		t.Errorf("what was printed is read as\n%s\nwant\n%s", same, out)
	}
	if code, out, _ := run(t, "", "up", "--prefix", nobodys, "--dry-run"); code != program.ExitFine || !strings.Contains(out, "ipFamily: ipv4\n") {
		t.Errorf("without a file: exit code %d, standard output\n%s", code, out)
	}
}
