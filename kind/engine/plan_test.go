package engine

import (
	"reflect"
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
		want    plan
		missing string // part of the message
	}{
		{"bare machine", bare(func(*host) {}), plan{install: []string{"docker.io"}}, ""},
		{"bare machine with systemd", bare(func(h *host) { h.systemd = true }), plan{install: []string{"docker.io"}, systemd: true}, ""},
		{"restricted bounding set", bare(func(h *host) { h.missingCaps = []string{"sys_resource"} }),
			plan{install: []string{"docker.io"}, missingCaps: []string{"sys_resource"}}, ""},
		{"restricted bounding set with systemd", bare(func(h *host) { h.systemd, h.missingCaps = true, []string{"sys_resource"} }),
			plan{install: []string{"docker.io"}, systemd: true}, ""},
		{"client without engine", bare(func(h *host) { h.client = true }), plan{install: []string{"docker.io"}}, ""},
		{"installed, not running", bare(func(h *host) { h.client, h.daemon = true, true }), plan{}, ""},
		{"installed, stale socket with a dead engine behind", bare(func(h *host) { h.client, h.daemon, h.listening = true, true, true }), plan{}, ""},
		{"not root", bare(func(h *host) { h.root = false }), plan{}, "only root can install"},
		{"another distribution", bare(func(h *host) { h.apt = false }), plan{}, "without apt-get"},
		{"a chosen endpoint", bare(func(h *host) { h.endpoint, h.client, h.answer = "tcp://builder:2376", true, "no route to host" }),
			plan{}, "no docker engine answers at tcp://builder:2376 (no route to host); start that engine, or unset DOCKER_HOST"},
		{"no permission", bare(func(h *host) { h.root, h.client, h.listening, h.answer = false, true, true, "permission denied while" }),
			plan{}, "usermod -aG docker"},
		{"a host's own engine that hangs", bare(func(h *host) { h.client, h.daemon, h.unmanaged, h.answer = true, true, 7, "no answer in 4s" }),
			plan{}, "dockerd (process 7) runs but does not answer, and no testbed started it (no answer in 4s); check its log"},
		{"engine without client", bare(func(h *host) { h.listening = true }), plan{}, "docker command is missing"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, missing := decide(tc.host)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("plan is %+v, want %+v", got, tc.want)
			}
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
