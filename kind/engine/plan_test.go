package engine

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	bare := func(change func(h *host)) host {
		h := host{endpoint: defaultEndpoint, distribution: "Debian GNU/Linux 12", debian: true, root: true}
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
			plan{install: []string{"docker.io"}, shim: true, missingCaps: []string{"sys_resource"}}, ""},
		{"client without engine", bare(func(h *host) { h.client = true }), plan{install: []string{"docker.io"}}, ""},
		{"installed, not running", bare(func(h *host) { h.client, h.daemon = true, true }), plan{}, ""},
		{"installed, stale socket with a dead engine behind", bare(func(h *host) { h.client, h.daemon, h.listening = true, true, true }), plan{}, ""},
		{"not root", bare(func(h *host) { h.root = false }), plan{}, "only root can install"},
		{"another distribution", bare(func(h *host) { h.debian, h.distribution = false, "Fedora Linux 42" }), plan{}, "not on Fedora Linux 42"},
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

func TestParseRelease(t *testing.T) {
	tests := []struct {
		text, name string
		debian     bool
	}{
		{"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n", "Debian GNU/Linux 12 (bookworm)", true},
		{"ID=ubuntu\nID_LIKE=debian\n", "ubuntu", true},
		{"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "linuxmint", true},
		{"ID=fedora\nPRETTY_NAME='Fedora'\n", "'Fedora'", false},
		{"", "an unknown system", false},
	}
	for _, tc := range tests {
		if name, debian := parseRelease(tc.text); name != tc.name || debian != tc.debian {
			t.Errorf("%q gives %q, %t; want %q, %t", tc.text, name, debian, tc.name, tc.debian)
		}
	}
}

// TestRevive covers which engines are taken for gone: down then removes the state of a testbed.
func TestRevive(t *testing.T) {
	installed := func(change func(h *host)) host {
		h := host{endpoint: defaultEndpoint, answer: "no answer in 8s", debian: true, root: true, client: true, daemon: true}
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
		{"bare machine", host{endpoint: defaultEndpoint, debian: true, root: true}, false, false, ""},
		{"bare machine, not root", host{endpoint: defaultEndpoint, debian: true}, false, false, ""},
		{"another distribution", host{endpoint: defaultEndpoint, distribution: "Fedora Linux 42", root: true}, false, false, ""},
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
		{"a chosen endpoint, besides a managed engine", installed(func(h *host) { h.endpoint = "tcp://builder:2376" }), true, false,
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
