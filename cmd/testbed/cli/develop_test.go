package cli

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestWrongTags: an invalid image reference is refused before the testbed is asked.
func TestWrongTags(t *testing.T) {
	for name, tag := range map[string][]string{
		"none": nil, "empty": {"--tag", ""}, "not a reference": {"--tag", "registry-cache.testbed/Upper:1"},
		"no registry": {"--tag", "extension:v1"}, "no tag": {"--tag", "registry-cache.testbed/extension"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--prefix", nobodys, "image", "build", "registry-cache"}, tag...)
			code, out, stderr := run(t, "", args...)
			if code != program.ExitUsage || out != "" || !strings.Contains(stderr, "--tag: ") || !strings.Contains(stderr, "for example") {
				t.Errorf("exit code %d, standard output %q, standard error %q", code, out, stderr)
			}
		})
	}
}
