package finding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// content reports a managed hosts.toml that differs from what the script writes for the arguments
// of its unit, and a unit whose arguments differ from the Extension's status.
func content(b *bundle.Bundle, node bundle.Node, mirror hostsfile.Mirror, name string) []Finding {
	i := slices.IndexFunc(node.Registries, func(r nodeconfig.Registry) bool { return r.Upstream == mirror.Upstream })
	if i < 0 {
		return nil
	}
	found := Finding{Certain: true, File: node.File(bundle.CertsFile)}
	registry, is := node.Registries[i], node.HostsFiles[mirror.Upstream]
	direct := registry
	direct.Endpoint = ""
	switch {
	case same(is, nodeconfig.HostsTOML(registry)):
		return outdated(b, node, registry)
	case same(is, nodeconfig.HostsTOML(direct)):
		found.Problem = fmt.Sprintf("The %s has no cache: the script got no answer from %s.", name, registry.Endpoint)
		found.Fix = "fix the cache or the network between it and the node; the script then adds it within seconds"
	default:
		found.Problem = fmt.Sprintf("The %s is not what the script writes.", name)
		found.Details = difference(is, nodeconfig.HostsTOML(registry))
		found.Fix = "see in the journal of " + bundle.ScriptUnit + " why the script has not corrected it, which takes seconds"
	}
	found.Details = append(found.Details, lastMessage(b, node, mirror.Upstream)...)
	return []Finding{found}
}

// outdated reports a unit with another endpoint than the Extension's status.
func outdated(b *bundle.Bundle, node bundle.Node, registry nodeconfig.Registry) []Finding {
	cached := b.Cached()
	i := slices.IndexFunc(cached, func(c bundle.Cached) bool { return c.Upstream == registry.Upstream })
	if i < 0 || cached[i].Endpoint == registry.Endpoint {
		return nil
	}
	return []Finding{{
		Certain: true, File: node.File(bundle.ScriptUnit),
		Problem: fmt.Sprintf("The unit %s on %s has %s for %s, but the Extension's status has %s: the node has not applied the newest OperatingSystemConfig.",
			bundle.ScriptUnit, node.Name, registry.Endpoint, registry.Upstream, cached[i].Endpoint),
		Fix: reconcile,
	}}
}

// same ignores surrounding white space, which `tail -v` adds.
func same(is, wanted string) bool { return strings.TrimSpace(is) == strings.TrimSpace(wanted) }

// difference describes the first line that differs.
func difference(is, wanted string) []string {
	have, want := strings.Split(strings.TrimSpace(is), "\n"), strings.Split(strings.TrimSpace(wanted), "\n")
	i := 0
	for i < len(have) && i < len(want) && have[i] == want[i] {
		i++
	}
	line := func(lines []string) string {
		if i == len(lines) {
			return "missing"
		}
		return fmt.Sprintf("%q", lines[i])
	}
	return []string{fmt.Sprintf("line %d is %s, want %s", i+1, line(have), line(want))}
}
