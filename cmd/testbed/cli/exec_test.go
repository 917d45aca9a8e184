package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestWrongUseOfNodes is refused before anybody looks for a testbed.
func TestWrongUseOfNodes(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"exec nowhere", []string{"exec"}, "name a node and a command"},
		{"exec nothing", []string{"exec", "worker"}, "usage: testbed exec NODE"},
		{"exec nothing after the dashes", []string{"exec", "worker", "--"}, "name a node and a command"},
		{"kubectl nowhere", []string{"kubectl"}, "name a cluster, seed or shoot"},
		{"kubectl of another cluster", []string{"kubectl", "garden", "get", "pods"}, "seed or shoot"},
		{"kubectl's flags before the cluster", []string{"kubectl", "-n", "x", "seed"}, "unknown shorthand flag"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, stderr := run(t, "", tc.args...)
			if code != program.ExitUsage || !strings.Contains(stderr, tc.want) || out != "" {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d and %q", code, out, stderr, program.ExitUsage, tc.want)
			}
		})
	}
}

func TestWithoutDashes(t *testing.T) {
	for _, tc := range []struct{ args, want []string }{
		{[]string{"worker", "--", "ls", "-l"}, []string{"worker", "ls", "-l"}},
		{[]string{"worker", "ls", "--", "-l"}, []string{"worker", "ls", "--", "-l"}},
		{[]string{"worker"}, []string{"worker"}},
	} {
		if got := withoutDashes(tc.args); !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %q, want %q", tc.args, got, tc.want)
		}
	}
}
