package kind

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// Diagnose writes what an engineer needs after a failure below dir: journals, hosts.toml and unit states of the nodes,
// objects, events and pod logs of both clusters, and the logs of the upstreams; dir/index.md lists it all. What the
// testbed does not have yet is left out. The caller may have more to add. The error only says which parts are missing.
func (t *Testbed) Diagnose(ctx context.Context, dir string, more ...diagnostics.Source) error {
	return diagnostics.Collect(ctx, dir, append(t.evidence(), more...)...)
}

func (t *Testbed) evidence() []diagnostics.Source {
	sources := []diagnostics.Source{diagnostics.Text("versions.txt", t.versions())}
	for name, c := range map[string]*cluster.Cluster{"seed": t.seed, "shoot": t.shoot} {
		if c == nil {
			continue
		}
		sources = append(sources, diagnostics.Cluster(name, c.RESTConfig()))
		for _, node := range c.Nodes() {
			sources = append(sources, diagnostics.Node(node))
		}
	}
	for _, registry := range t.upstreams.all() {
		sources = append(sources, diagnostics.Upstream(registry))
	}
	return sources
}

// versions names what the testbed is made of.
func (t *Testbed) versions() string {
	text := fmt.Sprintf("gardener %s\nnode image %s\n", gardener.Version, t.nodeImage)
	if t.engine != nil {
		text += fmt.Sprintf("docker %s (API %s, cgroup v%d)\n", t.engine.Version, t.engine.APIVersion, t.engine.CgroupVersion)
	}
	for _, name := range slices.Sorted(maps.Keys(t.images)) {
		text += fmt.Sprintf("%s\n", t.images[name].Ref)
	}
	return text
}
