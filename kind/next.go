package kind

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Next says what a person may do with the testbed that is up. The make targets mean the default testbed, so for another
// prefix the commands are spelled out.
func (t *Testbed) Next() string {
	status, down := "make status", "make down"
	prove := "  make e2e KEEP=1                prove it, and keep the testbed\n"
	if t.prefix != DefaultPrefix {
		status, down = "bin/testbed status --prefix "+t.prefix, "bin/testbed down --prefix "+t.prefix
		prove = "" // the scenarios run on the default testbed
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe testbed is up: %s.\n", t.whatIsCached())
	fmt.Fprintf(&text, "  %-29s  what runs, and where each node pulls from\n%s", status, prove)
	fmt.Fprintf(&text, "  kubectl --kubeconfig %s get pods -A\n", t.relative(t.state.shootKubeconfig()))
	fmt.Fprintf(&text, "  kubectl --kubeconfig %s get extensions,managedresources -A\n", t.relative(t.state.seedKubeconfig()))
	fmt.Fprintf(&text, "  %-29s  remove it\n\n", down)
	return text.String()
}

// whatIsCached says where pulls go.
func (t *Testbed) whatIsCached() string {
	if manifest := t.config.Shoot.Manifest; manifest != "" {
		return "the Shoot is that of " + t.relative(manifest)
	}
	var parts []string
	if cached := t.CachedUpstreams(); len(cached) > 0 {
		parts = append(parts, "pulls of "+strings.Join(cached, " and ")+" go through the caches as soon as these are ready")
	}
	if direct := t.hosts(t.config.Direct()); len(direct) > 0 {
		parts = append(parts, "pulls of "+strings.Join(direct, " and ")+" go direct")
	}
	return strings.Join(parts, ", ")
}

// relative shortens a path for people who work in the root of the repository.
func (t *Testbed) relative(path string) string {
	if short, err := filepath.Rel(t.root, path); err == nil {
		return short
	}
	return path
}
