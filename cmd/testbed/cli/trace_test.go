package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
)

// TestNobodyAsked: that a trace showed nothing is a failure only where it did not wait, and what is advised was not done already.
func TestNobodyAsked(t *testing.T) {
	for _, tc := range []struct {
		name   string
		wanted kind.TraceOptions
		events int
		want   string
	}{
		{"some did", kind.TraceOptions{Since: time.Minute}, 1, ""},
		{"followed in vain", kind.TraceOptions{Since: time.Minute, Follow: true}, 0, ""},
		{"followed from now on in vain", kind.TraceOptions{Follow: true}, 0, ""},
		{"none in that time", kind.TraceOptions{Image: "a/b", Since: time.Minute}, 0, "nobody has asked for a/b in the last 1m0s: -f waits"},
		{"in no time", kind.TraceOptions{Image: "a/b"}, 0, "--since 0 shows nothing that was: -f waits for who asks for a/b, --since 10m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := nobodyAsked(tc.wanted, tc.events)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
