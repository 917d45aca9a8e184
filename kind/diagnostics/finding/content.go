package finding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// content reports a hosts.toml of ours that is not what the script writes for the arguments of its unit, or whose unit does not have
// what the Extension says: those of the Shoot as it is now have not arrived.
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
		found.Problem = fmt.Sprintf("The %s is that for direct pulls: by the script, %s has not answered yet.", name, registry.Endpoint)
	default:
		found.Problem = fmt.Sprintf("The %s is not what the Shoot wants there: its content is another one than the script writes.", name)
		found.Details = difference(is, nodeconfig.HostsTOML(registry))
		found.Fix = "the script writes it anew by itself, within seconds: see why it does not in the journal of " + bundle.ScriptUnit
	}
	if said := lastWords(b, node, mirror.Upstream); said != "" {
		found.Details = append(found.Details, "the last words of the script: "+said)
	}
	return []Finding{found}
}

// outdated reports a unit that has another endpoint than the Extension.
func outdated(b *bundle.Bundle, node bundle.Node, registry nodeconfig.Registry) []Finding {
	cached := b.Cached()
	i := slices.IndexFunc(cached, func(c bundle.Cached) bool { return c.Upstream == registry.Upstream })
	if i < 0 || cached[i].Endpoint == registry.Endpoint {
		return nil
	}
	return []Finding{{
		Certain: true, File: node.File(bundle.ScriptUnit),
		Problem: fmt.Sprintf("%s of %s leads to %s for %s, but the Extension says %s: the OperatingSystemConfig has not reached the node.",
			bundle.ScriptUnit, node.Name, registry.Endpoint, registry.Upstream, cached[i].Endpoint),
		Fix: "reconcile the Shoot (testbed shoot reconcile); what keeps a node from it is in the journal of gardener-node-agent",
	}}
}

// same leaves white space around the texts out: how a file was printed adds some.
func same(is, wanted string) bool { return strings.TrimSpace(is) == strings.TrimSpace(wanted) }

// difference is the first line that differs.
func difference(is, wanted string) []string {
	have, want := strings.Split(strings.TrimSpace(is), "\n"), strings.Split(strings.TrimSpace(wanted), "\n")
	i := 0
	for i < len(have) && i < len(want) && have[i] == want[i] {
		i++
	}
	line := func(lines []string) string {
		if i == len(lines) {
			return "its end"
		}
		return fmt.Sprintf("%q", lines[i])
	}
	return []string{fmt.Sprintf("line %d is %s, wanted is %s", i+1, line(have), line(want))}
}
