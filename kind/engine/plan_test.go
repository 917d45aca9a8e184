package engine

import (
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	bare := func(change func(h *host)) host {
		h := host{endpoint: defaultEndpoint, apt: true, root: true}
		change(&h)
		return h
	}
	tests := []struct {
		name    string
		host    host
		missing string // part of the message
	}{
		{"bare machine", bare(func(*host) {}), ""},
		{"bare machine with systemd", bare(func(h *host) { h.systemd = true }), ""},
		{"client without engine", bare(func(h *host) { h.client = true }), ""},
		{"installed, not running", bare(func(h *host) { h.client, h.daemon = true, true }), ""},
		{"installed, stale socket with a dead engine behind", bare(func(h *host) { h.client, h.daemon, h.listening = true, true, true }), ""},
		{"not root", bare(func(h *host) { h.root = false }), "only root can install"},
		{"another distribution", bare(func(h *host) { h.apt = false }), "without apt-get"},
		{"a chosen endpoint", bare(func(h *host) { h.endpoint, h.client, h.answer = "tcp://builder:2376", true, "no route to host" }),
			"no docker engine answers at tcp://builder:2376 (no route to host); start that engine, or unset DOCKER_HOST"},
		{"no permission", bare(func(h *host) { h.root, h.client, h.listening, h.answer = false, true, true, "permission denied while" }),
			"usermod -aG docker"},
		{"a host's own engine that hangs", bare(func(h *host) { h.client, h.daemon, h.unmanaged, h.answer = true, true, 7, "no answer in 4s" }),
			"dockerd (process 7) runs but does not answer, and no testbed started it (no answer in 4s); check its log"},
		{"engine without client", bare(func(h *host) { h.listening = true }), "docker command is missing"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			missing := decide(tc.host)
			switch {
			case missing == nil && tc.missing != "":
				t.Errorf("nothing is missing, want %q", tc.missing)
			case missing != nil && (tc.missing == "" || !strings.Contains(missing.Error(), tc.missing)):
				t.Errorf("missing: %q, want %q", missing, tc.missing)
			case missing != nil && strings.Contains(missing.Error(), "\n"):
				t.Errorf("more than one line: %q", missing)
			}
		})
	}
}
