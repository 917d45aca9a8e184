package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestWrongUseOfDiagnostics is found before a testbed is looked for.
func TestWrongUseOfDiagnostics(t *testing.T) {
	occupied := t.TempDir()
	if err := os.WriteFile(filepath.Join(occupied, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no folder", []string{"export"}, "usage: testbed export DIR"},
		{"a folder of somebody", []string{"export", occupied}, "files that are no bundle"},
		{"no component", []string{"logs"}, "usage: testbed logs COMPONENT [NAME]"},
		{"unknown component", []string{"logs", "etcd"}, "use one of cache, node, upstream"},
		{"a negative time", []string{"logs", "cache", "--since", "-5m"}, "not negative"},
		{"no time", []string{"logs", "cache", "--since", "yesterday"}, "yesterday"},
		{"no image", []string{"trace"}, "usage: testbed trace IMAGE"},
		{"bad image", []string{"trace", "alpha.upstream.test/Shop"}, "image: "},
		{"a negative time of a trace", []string{"trace", "a/b", "--since", "-5m"}, "not negative"},
		{"stray argument", []string{"doctor", "me"}, `"me"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, stderr := run(t, "", tc.args...)
			if code != program.ExitUsage || !strings.Contains(stderr, tc.want) || out != "" {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d and %q", code, out, stderr, program.ExitUsage, tc.want)
			}
		})
	}
}
