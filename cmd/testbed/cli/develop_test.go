package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestWrongTags: both the build and its dry run refuse what the Docker Engine cannot call an image, before a testbed is asked.
func TestWrongTags(t *testing.T) {
	for name, tag := range map[string][]string{
		"none": nil, "empty": {"--tag", ""}, "not a reference": {"--tag", "registry-cache.testbed/Upper:1"},
		"no registry": {"--tag", "extension:v1"}, "no tag": {"--tag", "registry-cache.testbed/extension"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range [][]string{nil, {"--dry-run"}} {
				args := slices.Concat([]string{"--prefix", nobodys, "image", "build", "registry-cache"}, tag, way)
				code, out, stderr := run(t, "", args...)
				if code != program.ExitUsage || out != "" || !strings.Contains(stderr, "--tag: ") || !strings.Contains(stderr, "for example") {
					t.Errorf("%q: exit code %d, standard output %q, standard error %q", way, code, out, stderr)
				}
			}
		})
	}
}
