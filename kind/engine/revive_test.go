package engine

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestRevive covers when an engine counts as absent or as unreachable. If it is absent, `testbed
// down` removes the state of the testbed.
func TestRevive(t *testing.T) {
	installed := func(change func(h *host)) host {
		h := host{endpoint: defaultEndpoint, answer: "no answer in 8s", apt: true, root: true, client: true, daemon: true}
		change(&h)
		return h
	}
	tests := []struct {
		name    string
		host    host
		managed bool
		start   bool
		missing string // part of the message
	}{
		{"bare machine", host{endpoint: defaultEndpoint, apt: true, root: true}, false, false, ""},
		{"bare machine, not root", host{endpoint: defaultEndpoint, apt: true}, false, false, ""},
		{"another distribution", host{endpoint: defaultEndpoint, root: true}, false, false, ""},
		{"installed, not running", installed(func(*host) {}), false, false, ""},
		{"installed, not running, not root", installed(func(h *host) { h.root = false }), false, false, ""},
		{"managed has died", installed(func(*host) {}), true, true, ""},
		{"managed hangs", installed(func(h *host) { h.listening = true }), true, true, ""},
		{"managed has died, not root", installed(func(h *host) { h.root = false }), true, false, "only root can install and start it"},
		{"managed has died, packages removed", installed(func(h *host) { h.client, h.daemon = false, false }), true, false, ""},
		{"the host's own hangs", installed(func(h *host) { h.unmanaged, h.listening = 7, true }), false, false, "dockerd (process 7) runs but does not answer"},
		{"the host's own starts and does not listen yet", installed(func(h *host) { h.unmanaged = 7 }), false, false, "dockerd (process 7) runs"},
		{"something listens", installed(func(h *host) { h.listening, h.daemon = true, false }), false, false,
			"something listens at unix:///var/run/docker.sock but does not answer like a docker engine (no answer in 8s); check the log"},
		{"something listens, not root", installed(func(h *host) { h.listening, h.root = true, false }), false, false, "something listens"},
		{"something listens, no client", installed(func(h *host) { h.listening, h.client = true, false }), false, false, "docker command is missing"},
		{"no permission", installed(func(h *host) { h.root, h.listening, h.answer = false, true, "permission denied while" }), false, false, "usermod -aG docker"},
		{"a chosen endpoint", installed(func(h *host) { h.endpoint = "tcp://builder:2376" }), false, false,
			"no docker engine answers at tcp://builder:2376"},
		{"a chosen endpoint and a managed engine", installed(func(h *host) { h.endpoint = "tcp://builder:2376" }), true, false,
			"no docker engine answers at tcp://builder:2376"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			start, missing := revive(tc.host, tc.managed)
			if start != tc.start {
				t.Errorf("start is %t", start)
			}
			switch {
			case missing == nil && tc.missing != "":
				t.Errorf("nothing missing, want %q", tc.missing)
			case missing != nil && (tc.missing == "" || !strings.Contains(missing.Error(), tc.missing)):
				t.Errorf("missing: %q, want %q", missing, tc.missing)
			}
		})
	}
}

func TestAttachToAnEngineOutOfReach(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "docker.sock"))
	found, err := Attach(t.Context())
	if missing := (*Missing)(nil); found != nil || !errors.As(err, &missing) {
		t.Errorf("got %v, %v; want a *Missing", found, err)
	}
}
