package kind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// revisionTimeout bounds the question for the revision of the sources.
const revisionTimeout = 5 * time.Second

// Diagnose writes what an engineer needs after a failure below dir, and a reader who has nothing else: dir/index.md says what is
// wrong and what happened, by the journals, hosts.toml and unit states of the nodes, what they get from caches and upstreams,
// objects, events, metrics and pod logs of both clusters, the logs of the upstreams and of gardenlet, and the faults that are
// active. What the testbed does not have yet is left out, an earlier bundle in dir is replaced. The caller may have more to add. The
// error only says which parts are missing.
func (t *Testbed) Diagnose(ctx context.Context, dir string, more ...diagnostics.Source) error {
	err := t.collect(ctx, dir, more...)
	if ctx.Err() != nil {
		return err // the folder may have the metrics of an earlier bundle
	}
	return errors.Join(err, diagnostics.KeepMetrics(dir, t.state.metrics()))
}

// collect is Diagnose without being what the next bundle is compared with.
func (t *Testbed) collect(ctx context.Context, dir string, more ...diagnostics.Source) error {
	return diagnostics.Collect(ctx, dir, append(t.evidence(), more...)...)
}

func (t *Testbed) evidence() []diagnostics.Source {
	sources := []diagnostics.Source{
		diagnostics.Computed(bundle.VersionsFile, func(ctx context.Context) ([]byte, error) { return []byte(t.versions(ctx)), nil }),
		diagnostics.Tail(bundle.GardenletFile, t.state.gardenletLog()),
	}
	configs := map[string]*rest.Config{}
	for name, c := range map[string]*cluster.Cluster{bundle.SeedFolder: t.seed, bundle.ShootFolder: t.shoot} {
		if c == nil {
			continue
		}
		configs[name] = c.RESTConfig()
		sources = append(sources, diagnostics.Cluster(name, c.RESTConfig()))
		for _, node := range c.Nodes() {
			sources = append(sources, diagnostics.Node(node))
		}
	}
	if len(configs) > 0 {
		sources = append(sources, diagnostics.Metrics(configs[bundle.SeedFolder], configs[bundle.ShootFolder], t.state.metrics()))
	}
	if t.shoot != nil {
		sources = append(sources, diagnostics.Computed(bundle.FaultsFile, t.encodedFaults))
	}
	for _, registry := range t.upstreams.all() {
		sources = append(sources, diagnostics.Upstream(registry))
	}
	return sources
}

// encodedFaults are the active faults. A list with a part missing would look like all of them.
func (t *Testbed) encodedFaults(ctx context.Context) ([]byte, error) {
	active, err := t.Faults(ctx)
	if err != nil {
		return nil, err
	}
	return fault.Encode(active)
}

// versions names what the testbed is made of. The index adds what the nodes and pods say of themselves.
func (t *Testbed) versions(ctx context.Context) string {
	var lines []string
	if revision := t.revision(ctx); revision != "" {
		lines = append(lines, "sources "+revision)
	}
	lines = append(lines, "gardener "+gardener.Version)
	if t.nodeImage != "" {
		lines = append(lines, "node image "+t.nodeImage)
	}
	if t.engine != nil {
		lines = append(lines, fmt.Sprintf("docker %s (API %s, cgroup v%d)", t.engine.Version, t.engine.APIVersion, t.engine.CgroupVersion))
	}
	for _, name := range slices.Sorted(maps.Keys(t.images)) {
		lines = append(lines, t.images[name].Ref)
	}
	return strings.Join(lines, "\n") + "\n"
}

// revision is the commit of the sources, with "-dirty" if there are changes; "" where git does not know.
func (t *Testbed) revision(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, revisionTimeout)
	defer cancel()
	out, err := command.Output(ctx, "git", "-C", t.root, "describe", "--always", "--dirty", "--abbrev=12")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}
