package kind

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
)

// Diagnose writes what an engineer needs after a failure below dir: journals, hosts.toml and unit states of the nodes,
// objects, events and pod logs of both clusters, and the logs of the upstreams; dir/index.md lists it all. What the
// testbed does not have yet is left out. The error only says which parts are missing.
func (t *Testbed) Diagnose(ctx context.Context, dir string) error {
	return diagnostics.Collect(ctx, dir, t.evidence()...)
}

func (t *Testbed) evidence() []diagnostics.Source {
	var sources []diagnostics.Source
	for name, c := range map[string]*cluster.Cluster{"seed": t.seed, "shoot": t.shoot} {
		if c == nil {
			continue
		}
		sources = append(sources, diagnostics.Cluster(name, c.RESTConfig()))
		for _, node := range c.Nodes() {
			sources = append(sources, diagnostics.Node(node))
		}
	}
	for _, registry := range t.upstreams {
		sources = append(sources, diagnostics.Upstream(registry))
	}
	return sources
}
