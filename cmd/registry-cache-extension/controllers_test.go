package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestDisabledControllers: the names are those of gardener-extension-registry-cache. An unknown
// name is an error.
func TestDisabledControllers(t *testing.T) {
	for names, fails := range map[string]bool{"": false, "registry-cache-controller,heartbeat": false, "healthcheck": false, "mirror": true} {
		options := newOptions()
		if err := newFlags(options).Parse([]string{"--disable-controllers=" + names}); err != nil {
			t.Fatal(err)
		}
		if err := options.controllers.Complete(); (err != nil) != fails {
			t.Errorf("%q: error %v, want one: %t", names, err, fails)
		}
	}
}

func TestVersion(t *testing.T) {
	var out, messages bytes.Buffer
	streams := program.Streams{Out: &out, Err: &messages}
	code := program.Run(t.Context(), newCommand(streams), streams, []string{"--version"})
	if code != program.ExitFine || !strings.HasPrefix(out.String(), "registry-cache-extension version ") {
		t.Errorf("exit code %d, output %q, messages %q", code, out.String(), messages.String())
	}
}

// TestLeaderElection: gardener-extension-registry-cache uses the same Lease, so the two extensions
// never lead at the same time. The chart must allow access to the Lease.
func TestLeaderElection(t *testing.T) {
	const lease = "extension-registry-cache-leader-election"
	if got := newOptions().manager.LeaderElectionID; got != lease {
		t.Errorf("the Lease is %s", got)
	}
	chart, err := os.ReadFile("../../charts/testdata/registry-cache-extension/minimal.yaml")
	if err != nil || !bytes.Contains(chart, []byte("resourceNames: ["+lease+", ")) {
		t.Errorf("the chart has no rule for the Lease: %v", err)
	}
}
