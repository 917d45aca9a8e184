package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

// TestWrongFaults proves that mistakes are found before anything is asked of a testbed.
func TestWrongFaults(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no verb", nil, "name a command"},
		{"no kind", []string{"add", "upstream/alpha"}, "usage: fault add TARGET KIND"},
		{"unknown role", []string{"add", "pod/x", "kill"}, "use one of upstream, cache, node"},
		{"unknown kind", []string{"add", "upstream/alpha", "explode"}, "use one of status, latency, hang"},
		{"missing option", []string{"add", "upstream/alpha", "status"}, "requires --status"},
		{"option of another kind", []string{"add", "upstream/alpha", "hang", "--rate", "1Ki"}, "has no option --rate"},
		{"empty option", []string{"add", "upstream/alpha", "status", "--status="}, "want an HTTP status"},
		{"stray argument", []string{"list", "f1"}, `"f1"`},
		{"unknown flag of delete", []string{"delete", "--rust"}, "unknown flag: --rust"},
		{"unknown flag of its alias", []string{"clear", "--rust"}, "unknown flag: --rust"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			std := program.Streams{Out: &out, Err: &stderr}
			command := newFaultCommand(&kind.Options{Directory: t.TempDir(), Out: &stderr}, std)
			if code := program.Run(t.Context(), command, std, tc.args); code != program.ExitUsage {
				t.Errorf("exit code %d, want %d", code, program.ExitUsage)
			}
			if !strings.Contains(stderr.String(), tc.want) || out.Len() > 0 {
				t.Errorf("stderr %q does not say %q, or stdout %q is not empty", stderr.String(), tc.want, out.String())
			}
		})
	}
}

func TestFaultHelp(t *testing.T) {
	var out bytes.Buffer
	std := program.Streams{Out: &out, Err: &out}
	if code := program.Run(t.Context(), newFaultCommand(&kind.Options{}, std), std, []string{"add", "--help"}); code != program.ExitFine {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"upstream/", "truncate", "cache/", "blackhole", "node/", "kubelet-stop", "--for", "--header"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help leaves %q out", want)
		}
	}
}
