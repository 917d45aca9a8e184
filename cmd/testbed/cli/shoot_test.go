package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/logs"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/pull"
	"github.com/gardener-extensions/registry-cache/kind/shell"
	"github.com/gardener-extensions/registry-cache/kind/snapshot"
)

// run runs a command line of testbed with this standard input.
func run(t *testing.T, stdin string, args ...string) (code int, out, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	std := program.Streams{Out: &o, Err: &e}
	root := New(std)
	root.SetIn(strings.NewReader(stdin))
	code = program.Run(t.Context(), root, std, args)
	return code, o.String(), e.String()
}

func TestWrongUseOfShoot(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "shoot.yaml")
	if err := os.WriteFile(broken, []byte("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nspec: {purposes: testing}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no verb", []string{"shoot"}, "name a command"},
		{"unknown verb", []string{"shoot", "sleep"}, `unknown command "sleep"`},
		{"no file", []string{"shoot", "apply"}, "-f FILE"},
		{"a file that is not there", []string{"shoot", "apply", "-f", broken + "x"}, "no such file"},
		{"a manifest with a mistake", []string{"shoot", "apply", "-f", broken}, `unknown field "spec.purposes"`},
		{"nothing on standard input", []string{"shoot", "apply", "-f", "-"}, "standard input holds no Shoot"},
		{"stray argument", []string{"shoot", "delete", "local"}, `"local"`},
		{"unknown cluster", []string{"kubeconfig", "garden"}, "garden"},
		{"no cluster", []string{"kubeconfig"}, "usage: testbed kubeconfig"},
		{"no node", []string{"shell"}, "usage: testbed shell NODE"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, stderr := run(t, "", tc.args...)
			if code != program.ExitUsage || !strings.Contains(stderr, tc.want) || out != "" {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d and %q", code, out, stderr, program.ExitUsage, tc.want)
			}
		})
	}
}

// TestDryRun: the answer is a Shoot, and what is not used of the manifest is prose.
func TestDryRun(t *testing.T) {
	manifest, err := os.ReadFile("../../../examples/shoots/credentials.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(manifest), "  extensions:\n", "  extensions:\n  - type: shoot-dns-service\n", 1)
	code, out, stderr := run(t, text, "shoot", "apply", "--dry-run", "-f", "-")
	if code != program.ExitFine {
		t.Errorf("exit code %d", code)
	}
	golden.Compare(t, "dry-run.yaml", out)
	golden.Compare(t, "dry-run.txt", stderr)
	if strings.Contains(out+stderr, "replace-me") {
		t.Error("the password is printed")
	}
}

// TestExitCodes ties the errors of the library to the exit codes that users rely on.
func TestExitCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"no testbed":          {fmt.Errorf("x: %w", kind.ErrDown), program.ExitEnvironment},
		"a busy testbed":      {fmt.Errorf("x: %w", kind.ErrBusy), program.ExitEnvironment},
		"a foreign testbed":   {fmt.Errorf("x: %w", &kind.OtherCheckoutError{Prefix: "one", Directory: "/there"}), program.ExitEnvironment},
		"wrong stage":         {fmt.Errorf("x: %w", &operate.StageError{Verb: "restore", Stage: gardenlet.StagePresent}), program.ExitUsage},
		"wrong rotation":      {fmt.Errorf("x: %w", &operate.RotationError{Verb: "rotate-ca-start", Phase: "Prepared"}), program.ExitUsage},
		"unknown node":        {fmt.Errorf("x: %w", &shell.UnknownNodeError{}), program.ExitUsage},
		"not debuggable":      {fmt.Errorf("x: %w", &develop.NotDebuggableError{}), program.ExitUsage},
		"occupied folder":     {fmt.Errorf("x: %w", &diagnostics.OccupiedError{}), program.ExitUsage},
		"wrong fault":         {fmt.Errorf("x: %w", &spec.UseError{}), program.ExitUsage},
		"wrong component":     {fmt.Errorf("x: %w", &logs.UsageError{}), program.ExitUsage},
		"wrong option":        {fmt.Errorf("x: %w", &pull.InvalidError{}), program.ExitUsage},
		"unknown snapshot":    {fmt.Errorf("x: %w", &snapshot.UnknownError{}), program.ExitUsage},
		"taken snapshot":      {fmt.Errorf("x: %w", &snapshot.ExistsError{}), program.ExitUsage},
		"bad snapshot name":   {fmt.Errorf("x: %w", &snapshot.NameError{}), program.ExitUsage},
		"a flow that failed":  {fmt.Errorf("x"), program.ExitFailed},
		"everything was fine": {nil, program.ExitFine},
	} {
		if code := program.ExitCode(tc.err); code != tc.want {
			t.Errorf("%s: exit code %d, want %d", name, code, tc.want)
		}
	}
}
