package cli

import (
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
)

// Next says what a person may do with the testbed that is up. The make targets mean the default
// testbed, so for another prefix the commands are spelled out.
func next(t *kind.Testbed) string {
	status, down := "make status", "make down"
	prove := "  make e2e KEEP=1                prove it, and keep the testbed\n"
	if t.Prefix != kind.DefaultPrefix {
		status, down = "bin/testbed status --prefix "+t.Prefix, "bin/testbed down --prefix "+t.Prefix
		prove = "" // the scenarios run on the default testbed
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe testbed is up: %s.\n", whatIsCached(t))
	fmt.Fprintf(&text, "  %-29s  what runs, and where each node pulls from\n%s", status, prove)
	fmt.Fprintf(&text, "  kubectl --kubeconfig %s get pods -A\n", t.Relative(t.State.ShootKubeconfig()))
	fmt.Fprintf(&text, "  kubectl --kubeconfig %s get extensions,managedresources -A\n", t.Relative(t.State.SeedKubeconfig()))
	fmt.Fprintf(&text, "  %-29s  remove it\n\n", down)
	return text.String()
}

// whatIsCached says where pulls go.
func whatIsCached(t *kind.Testbed) string {
	if manifest := t.Config.Shoot.Manifest; manifest != "" {
		return "the Shoot is that of " + t.Relative(manifest)
	}
	var parts []string
	if cached := t.CachedUpstreams(); len(cached) > 0 {
		parts = append(parts, "pulls of "+strings.Join(cached, " and ")+" go through the caches as soon as these are ready")
	}
	if direct := t.Hosts(t.Config.Direct()); len(direct) > 0 {
		parts = append(parts, "pulls of "+strings.Join(direct, " and ")+" go direct")
	}
	return strings.Join(parts, ", ")
}
