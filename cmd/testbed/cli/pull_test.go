package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestWrongPulls are refused before anybody looks for a testbed.
func TestWrongPulls(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no image", []string{"pull"}, "usage: testbed pull IMAGE"},
		{"two images", []string{"pull", "a", "b"}, "usage: testbed pull IMAGE"},
		{"bad image", []string{"pull", "A B"}, "image: "},
		{"node and all", []string{"pull", "alpha.upstream.test/x", "--all", "--node", "worker"}, "node: "},
		{"never", []string{"pull", "alpha.upstream.test/x", "--times", "0"}, "times: 0"},
		{"at once", []string{"pull", "alpha.upstream.test/x", "--parallel", "0"}, "parallel: 0"},
		{"no time", []string{"pull", "alpha.upstream.test/x", "--timeout", "0s"}, "timeout: 0s"},
		{"no number", []string{"pull", "alpha.upstream.test/x", "--times", "many"}, `"many"`},
		{"push with an argument", []string{"push", "x"}, "usage: testbed push"},
		{"push without layers", []string{"push", "--layers", "0"}, "layers: 0"},
		{"push too much", []string{"push", "--layers", "100", "--size", "1Gi"}, "more than 2GiB"},
		{"push with a bad size", []string{"push", "--size", "big"}, `size: "big"`},
		{"push with a bad name", []string{"push", "--name", "A"}, "name: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			std := program.Streams{Out: &out, Err: &stderr}
			if code := program.Run(t.Context(), New(std), std, tc.args); code != program.ExitUsage {
				t.Errorf("exit code %d, want %d", code, program.ExitUsage)
			}
			if !strings.Contains(stderr.String(), tc.want) || out.Len() > 0 {
				t.Errorf("stderr %q, want %q; stdout %q", stderr.String(), tc.want, out.String())
			}
		})
	}
}
