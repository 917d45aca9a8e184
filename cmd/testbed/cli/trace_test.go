package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/trace"
)

// TestNobodyAsked: that a trace showed nothing is a failure only where it did not wait, and what is
// advised was not done already.
func TestNobodyAsked(t *testing.T) {
	for _, tc := range []struct {
		name   string
		wanted trace.Options
		events int
		want   string
	}{
		{"some did", trace.Options{Since: time.Minute}, 1, ""},
		{"followed in vain", trace.Options{Since: time.Minute, Follow: true}, 0, ""},
		{"followed from now on in vain", trace.Options{Follow: true}, 0, ""},
		{"none in that time", trace.Options{Image: "a/b", Since: time.Minute}, 0, "nobody has asked for a/b in the last 1m0s: -f waits"},
		{"in no time", trace.Options{Image: "a/b"}, 0, "--since 0 shows nothing that was: -f waits for who asks for a/b, --since 10m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := nobodyAsked(tc.wanted, tc.events)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
