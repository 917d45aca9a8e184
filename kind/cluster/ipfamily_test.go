package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingIPv6(t *testing.T) {
	for _, tc := range []struct {
		name, inspected, want string
	}{
		{"both", "true 172.18.0.0/16 fc00:f853:ccd:e793::/64\n", ""},
		{"IPv6 alone", "true fc00:f853:ccd:e793::/64\n", ""},
		{"IPv4 alone", "false 172.18.0.0/16\n", "no IPv6 subnet (172.18.0.0/16)"},
		{"a range that is switched off", "false 172.18.0.0/16 fc00::/64\n", "no IPv6 subnet"},
		{"switched on without a range", "true 172.18.0.0/16\n", "no IPv6 subnet"},
		{"nothing", "\n", "no IPv6 subnet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := missingIPv6(tc.inspected)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIPv6MissingAsksTheKernelOfTheEngine(t *testing.T) {
	fakeDocker(t)
	before := hostIPv6
	t.Cleanup(func() { hostIPv6 = before })
	hostIPv6 = filepath.Join(t.TempDir(), "disable_ipv6")
	if reason, err := IPv6Missing(t.Context(), true); err != nil || !strings.Contains(reason, "kernel") {
		t.Errorf("without the file: %q, %v", reason, err)
	}
	if err := os.WriteFile(hostIPv6, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if reason, err := IPv6Missing(t.Context(), true); err != nil || !strings.Contains(reason, "disabled") {
		t.Errorf("switched off: %q, %v", reason, err)
	}
	// An engine elsewhere has another kernel: only its network can tell. The fake knows no such
	// command.
	if reason, err := IPv6Missing(t.Context(), false); err == nil {
		t.Errorf("an engine elsewhere: %q, want the network to be asked", reason)
	}
}
