package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/cachetest/pull"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/develop"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

// absent is the prefix of a testbed that does not exist, so that tests change no running testbed.
const absent = "absent-testbed"

const testbedHeader = "apiVersion: testbed.registry.extensions.gardener.cloud/v1alpha1\nkind: Testbed\n"

// run runs a command line of testbed with this standard input.
func run(t *testing.T, stdin string, args ...string) (code int, out, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	std := program.Streams{Out: &o, Err: &e}
	root := newCommand(std)
	root.SetIn(strings.NewReader(stdin))
	code = program.Run(t.Context(), root, std, args)
	return code, o.String(), e.String()
}

// TestSilentStart: what dependencies log before main starts must not reach the screen. Without
// package program, a line about PSI metrics would appear on a kernel without them.
func TestSilentStart(t *testing.T) {
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(stderr.String()); got != "" && got != "testing: warning: no tests to run" {
		t.Errorf("the program prints before main starts: %s", got)
	}
}

// TestUsageErrors: a mistake in a command line is reported before a testbed is needed.
func TestUsageErrors(t *testing.T) {
	folder := t.TempDir()
	broken, missing := filepath.Join(folder, "shoot.yaml"), filepath.Join(folder, "missing.yaml")
	if err := os.WriteFile(broken, []byte("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nspec: {purposes: testing}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	image := "alpha.upstream.test/x"
	for _, tc := range []struct {
		args        []string
		stdin, want string
	}{
		{nil, "", "name a command"},
		{[]string{"destroy"}, "", `unknown command "destroy"`},
		{[]string{"up", "now"}, "", `"now"`},
		{[]string{"down", "--force"}, "", "unknown flag"},
		{[]string{"up", "--prefix", "No_Prefix"}, "", "prefix"},
		{[]string{"doctor", "me"}, "", `"me"`},

		{[]string{"up", "-f", missing}, "", "no such file"},
		{[]string{"up", "-f", "-"}, "", "standard input: empty"},
		{[]string{"up", "-f", "-"}, testbedHeader + "shoot: {workers: 9}\n", "standard input: shoot.workers: Invalid value: 9"},
		{[]string{"up", "-f", "-"}, testbedHeader + "worker: 2\n", `unknown field "worker"`},
		{[]string{"up", "--garden", "-f", "-"}, testbedHeader + "shoot: {ipFamily: ipv6}\n", "shoot.ipFamily: Forbidden"},
		{[]string{"up", "-f", "-"}, testbedHeader + "shoot: {manifest: " + missing + "}\n", "shoot.manifest: "},
		{[]string{"up", "-f", "-"}, testbedHeader + "shoot: {manifest: " + broken + "}\n", `unknown field "spec.purposes"`},

		{[]string{"kubeconfig"}, "", "usage: testbed kubeconfig"},
		{[]string{"kubeconfig", "seeds"}, "", "seeds"},
		{[]string{"kubectl"}, "", "name a cluster: seed, shoot or garden"},
		{[]string{"kubectl", "gardens", "get", "pods"}, "", "seed, shoot or garden"},
		{[]string{"kubectl", "garden", "get", "shoots"}, "", "has no garden: create one with `testbed up --garden`"},
		{[]string{"kubeconfig", "garden"}, "", "has no garden"},
		{[]string{"gardenlet"}, "", "has no garden"},
		{[]string{"kubectl", "-n", "x", "seed"}, "", "unknown shorthand flag"},
		{[]string{"exec"}, "", "name a node and a command"},
		{[]string{"exec", "worker"}, "", "usage: testbed exec NODE"},
		{[]string{"exec", "worker", "--"}, "", "name a node and a command"},

		{[]string{"shoot"}, "", "name a command"},
		{[]string{"shoot", "sleep"}, "", `unknown command "sleep"`},
		{[]string{"shoot", "delete", "local"}, "", `"local"`},
		{[]string{"shoot", "apply"}, "", "-f FILE"},
		{[]string{"shoot", "apply", "-f", missing}, "", "no such file"},
		{[]string{"shoot", "apply", "-f", broken}, "", `unknown field "spec.purposes"`},
		{[]string{"shoot", "apply", "-f", "-"}, "", "standard input has no Shoot"},

		{[]string{"pull"}, "", "usage: testbed pull IMAGE"},
		{[]string{"pull", "a", "b"}, "", "usage: testbed pull IMAGE"},
		{[]string{"pull", "A B"}, "", "image: "},
		{[]string{"pull", image, "--all", "--node", "worker"}, "", "node: "},
		{[]string{"pull", image, "--timeout", "0s"}, "", "timeout: 0s"},
		{[]string{"push", "x"}, "", "usage: testbed push"},
		{[]string{"push", "--layers", "0"}, "", "layers: 0"},
		{[]string{"push", "--layers", "100", "--size", "1Gi"}, "", "more than 2GiB"},
		{[]string{"push", "--size", "big"}, "", `size: "big"`},

		{[]string{"fault"}, "", "name a command"},
		{[]string{"fault", "add", "upstream/alpha"}, "", "usage: testbed fault add TARGET KIND"},
		{[]string{"fault", "add", "pod/x", "kill"}, "", "use one of upstream, cache, node"},
		{[]string{"fault", "add", "upstream/alpha", "explode"}, "", "use one of status, hang, slow"},
		{[]string{"fault", "add", "upstream/alpha", "status"}, "", "requires --status"},
		{[]string{"fault", "add", "upstream/alpha", "hang", "--rate", "1Ki"}, "", "has no option --rate"},
		{[]string{"fault", "add", "upstream/alpha", "status", "--status="}, "", "want an HTTP status"},
		{[]string{"fault", "add", "node/worker2", "loss", "--for", "1m"}, "", "has no option --for"},
		{[]string{"fault", "list", "f1"}, "", `"f1"`},
		{[]string{"fault", "delete", "--rust"}, "", "unknown flag: --rust"},
		{[]string{"fault", "clear", "--rust"}, "", "unknown flag: --rust"},
		{[]string{"reproduce"}, "", "usage: testbed reproduce BUG..."},
		{[]string{"reproduce", "--list", "s22"}, "", `"s22"`},

		{[]string{"export"}, "", "usage: testbed export FILE.tar.gz"},

		{[]string{"test"}, "", "omit --prefix"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			code, out, stderr := run(t, tc.stdin, append([]string{"--prefix", absent}, tc.args...)...)
			if code != program.ExitUsage || !strings.Contains(stderr, tc.want) || out != "" {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d and %q", code, out, stderr, program.ExitUsage, tc.want)
			}
		})
	}
}

// TestTagErrors: an invalid image reference is a usage error with an example.
func TestTagErrors(t *testing.T) {
	for name, tag := range map[string][]string{
		"none": nil, "empty": {"--tag", ""}, "not a reference": {"--tag", "registry-cache.testbed/Upper:1"},
		"no registry": {"--tag", "extension:v1"}, "no tag": {"--tag", "registry-cache.testbed/extension"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--prefix", absent, "image", "build", "registry-cache"}, tag...)
			code, out, stderr := run(t, "", args...)
			if code != program.ExitUsage || out != "" || !strings.Contains(stderr, "--tag: ") || !strings.Contains(stderr, "for example") {
				t.Errorf("exit code %d, standard output %q, standard error %q", code, out, stderr)
			}
		})
	}
}

// TestReproduceRefuses: nothing is run if the bug or the testbed is wrong.
func TestReproduceRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"an unknown bug", []string{"s99"}, "s99"},
		{"another testbed", []string{"s22", "--prefix", "second"}, "on the default testbed only"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, _, stderr := run(t, "", append([]string{"reproduce"}, tc.args...)...)
			if code != program.ExitUsage || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, %s; want %q", code, stderr, tc.want)
			}
		})
	}
}

// TestExitCodes: error types of other packages have the exit codes that users rely on.
func TestExitCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"no engine":         {&engine.Missing{}, program.ExitEnvironment},
		"machine too small": {&bringup.Failures{}, program.ExitEnvironment},
		"no testbed":        {kind.ErrDown, program.ExitEnvironment},
		"a busy testbed":    {kind.ErrBusy, program.ExitEnvironment},
		"wrong stage":       {&operate.RefusedError{Operation: "wake", Why: "it is not there"}, program.ExitUsage},
		"unknown node":      {&develop.UnknownNodeError{}, program.ExitUsage},
		"wrong fault":       {&spec.UsageError{}, program.ExitUsage},
		"wrong option":      {&pull.InvalidError{}, program.ExitUsage},
	} {
		if code := program.ExitCode(fmt.Errorf("x: %w", tc.err)); code != tc.want {
			t.Errorf("%s: exit code %d, want %d", name, code, tc.want)
		}
	}
}
