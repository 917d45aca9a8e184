package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// revisionTimeout bounds the question for the revision of the sources.
const revisionTimeout = 5 * time.Second

// Diagnose writes what an engineer needs after a failure below dir, and a reader who has nothing
// else: dir/index.md says what is wrong and what happened, by the journals, hosts.toml and unit
// states of the nodes, what they get from caches and upstreams, objects, events, metrics and pod
// logs of both clusters, the logs of the upstreams and of gardenlet, and the faults that are
// active. What the testbed does not have yet is left out, an earlier bundle in dir is replaced. The
// caller may have more to add. The error only says which parts are missing.
func Diagnose(ctx context.Context, t *kind.Testbed, dir string, more ...Source) error {
	err := CollectFrom(ctx, t, dir, more...)
	if ctx.Err() != nil {
		return err // the folder may have the metrics of an earlier bundle
	}
	return errors.Join(err, KeepMetrics(dir, t.State.Metrics()))
}

// CollectFrom is Diagnose without being what the next bundle is compared with.
func CollectFrom(ctx context.Context, t *kind.Testbed, dir string, more ...Source) error {
	return Collect(ctx, dir, append(evidence(t), more...)...)
}

func evidence(t *kind.Testbed) []Source {
	sources := []Source{
		Computed(bundle.VersionsFile, func(ctx context.Context) ([]byte, error) { return []byte(testbedVersions(ctx, t)), nil }),
		Tail(bundle.GardenletFile, t.State.GardenletLog()),
	}
	configs := map[string]*rest.Config{}
	for name, c := range map[string]*cluster.Cluster{bundle.SeedFolder: t.Seed, bundle.ShootFolder: t.Shoot} {
		if c == nil {
			continue
		}
		configs[name] = c.RESTConfig()
		sources = append(sources, Cluster(name, c.RESTConfig()))
		for _, node := range c.Nodes() {
			sources = append(sources, Node(node))
		}
	}
	if len(configs) > 0 {
		sources = append(sources, Metrics(configs[bundle.SeedFolder], configs[bundle.ShootFolder], t.State.Metrics()))
	}
	if t.Shoot != nil {
		sources = append(sources, Computed(bundle.FaultsFile, func(ctx context.Context) ([]byte, error) { return encodedFaults(ctx, t) }))
	}
	for _, registry := range t.Upstreams.All() {
		sources = append(sources, Upstream(registry))
	}
	return sources
}

// encodedFaults are the active faults. A list with a part missing would look like all of them.
func encodedFaults(ctx context.Context, t *kind.Testbed) ([]byte, error) {
	active, err := fault.List(ctx, t)
	if err != nil {
		return nil, err
	}
	return spec.Encode(active)
}

// testbedVersions names what the testbed is made of. The index adds what the nodes and pods say of
// themselves.
func testbedVersions(ctx context.Context, t *kind.Testbed) string {
	var lines []string
	if revision := revision(ctx, t); revision != "" {
		lines = append(lines, "sources "+revision)
	}
	lines = append(lines, "gardener "+gardener.Version)
	if t.NodeImage != "" {
		lines = append(lines, "node image "+t.NodeImage)
	}
	if t.Engine != nil {
		lines = append(lines, fmt.Sprintf("docker %s (API %s, cgroup v%d)", t.Engine.Version, t.Engine.APIVersion, t.Engine.CgroupVersion))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Images)) {
		lines = append(lines, t.Images[name].Ref)
	}
	return strings.Join(lines, "\n") + "\n"
}

// revision is the commit of the sources, with "-dirty" if there are changes; "" where git does not
// know.
func revision(ctx context.Context, t *kind.Testbed) string {
	ctx, cancel := context.WithTimeout(ctx, revisionTimeout)
	defer cancel()
	out, err := command.Output(ctx, "git", "-C", t.Root, "describe", "--always", "--dirty", "--abbrev=12")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}
