package finding

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// mirrors compares the hosts.toml files of the workers with the Extension's status and the Services.
func mirrors(b *bundle.Bundle) []Finding {
	if b.Sleeps() {
		return nil
	}
	var all []Finding
	for _, node := range b.Workers() {
		if !node.MirrorsKnown {
			continue
		}
		for _, cached := range b.Cached() {
			all = append(all, absent(b, node, cached)...)
		}
		for _, mirror := range node.Mirrors {
			all = append(all, wrong(b, node, mirror)...)
		}
	}
	return all
}

// absent reports an upstream with a cache for which a node has no hosts.toml: its pulls go past the cache.
func absent(b *bundle.Bundle, node bundle.Node, cached bundle.Cached) []Finding {
	if slices.ContainsFunc(node.Mirrors, func(m hostsfile.Mirror) bool { return m.Upstream == cached.Upstream }) {
		return nil
	}
	found := Finding{
		Certain: true, File: node.JournalFile("configure-containerd-registries"),
		Problem: fmt.Sprintf("%s has no hosts.toml for %s: its pulls go to the upstream, past the cache.", node.Name, cached.Upstream),
	}
	i := slices.IndexFunc(node.Registries, func(r nodeconfig.Registry) bool { return r.Upstream == cached.Upstream })
	switch {
	case node.Units[bundle.ScriptUnit].Load != "loaded":
		found.Details = []string{"the unit " + bundle.ScriptUnit + " is not on the node: see OperatingSystemConfig and gardener-node-agent"}
	case i < 0:
		found.Details = []string{bundle.ScriptUnit + " does not name this upstream: see OperatingSystemConfig and gardener-node-agent"}
	default:
		found.Details = []string{"the unit waits for " + node.Registries[i].Endpoint}
	}
	if said := lastWords(b, node, cached.Upstream); said != "" {
		found.Details = append(found.Details, "the last words of the script: "+said)
	}
	return []Finding{found}
}

// lastWords is what the script said last about an upstream.
func lastWords(b *bundle.Bundle, node bundle.Node, upstream string) string {
	said := ""
	for _, line := range b.Journal(node, "configure-containerd-registries") {
		if strings.HasPrefix(line.Message, upstream+":") {
			said = line.Time.Format("15:04:05") + " " + line.Message
		}
	}
	return said
}

// wrong reports a hosts.toml that leads nowhere, or should not be there.
func wrong(b *bundle.Bundle, node bundle.Node, mirror hostsfile.Mirror) []Finding {
	found := Finding{Certain: true, File: node.File(bundle.CertsFile)}
	name := fmt.Sprintf("hosts.toml of %s for %s", node.Name, mirror.Upstream)
	i := slices.IndexFunc(b.Cached(), func(c bundle.Cached) bool { return c.Upstream == mirror.Upstream })
	switch {
	case mirror.Problem != "":
		found.Problem = fmt.Sprintf("The %s is damaged: %s.", name, mirror.Problem)
		return []Finding{found}
	case !mirror.Managed && i >= 0:
		found.Problem, found.Certain = fmt.Sprintf("The %s is not ours: the script leaves it alone, and pulls go where it says.", name), false
		return []Finding{found}
	case !mirror.Managed:
		return nil
	case i < 0 && b.Seed.Known:
		found.Problem = fmt.Sprintf("The %s is left over: no cache has this upstream.", name)
		return []Finding{found}
	}
	if all := stale(b, mirror, found, name); len(all) > 0 {
		return all
	}
	return content(b, node, mirror, name)
}

// stale reports addresses that no Service has: nothing answers there, and containerd waits until its dial times out, for each request.
func stale(b *bundle.Bundle, mirror hostsfile.Mirror, found Finding, name string) []Finding {
	if !b.Shoot.Known {
		return nil
	}
	for _, host := range mirror.Hosts {
		address := hostOf(host)
		if other := cacheAt(b.Shoot.CacheServices(), address); other != "" && other != mirror.Upstream {
			found.Problem = fmt.Sprintf("The %s leads to %s, which is the cache of %s.", name, address, other)
			return []Finding{found}
		}
		if slices.ContainsFunc(b.Shoot.Services, func(s corev1.Service) bool { return slices.Contains(s.Spec.ClusterIPs, address) }) {
			continue
		}
		found.Problem = fmt.Sprintf("The %s leads to %s, which no Service has: "+
			"each request waits until connecting times out, then goes to the upstream.", name, address)
		for _, service := range b.Shoot.CacheServices() {
			if service.Annotations[v1alpha3.AnnotationUpstream] == mirror.Upstream {
				found.Details = []string{"the Service " + created(service)}
			}
		}
		found.Fix = "reconcile the Shoot (testbed shoot reconcile); what keeps a node from it is in the journal of gardener-node-agent"
		return []Finding{found}
	}
	return nil
}

// probes reports hosts of a hosts.toml that did not answer the node, or slowly, when the bundle was made.
func probes(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, node := range b.Workers() {
		for _, probe := range node.Probes {
			if found, bad := assess(node, probe); bad {
				all = append(all, found)
			}
		}
	}
	return all
}

// slowProbe is how long an answer to GET /v2/ may take, in seconds; it takes milliseconds.
const slowProbe = 1.0

func assess(node bundle.Node, probe bundle.Probe) (Finding, bool) {
	ours := slices.ContainsFunc(node.Mirrors, func(m hostsfile.Mirror) bool { return m.Upstream == probe.Upstream && m.Managed })
	found := Finding{Certain: ours, File: node.File(bundle.ProbeFile)}
	who := fmt.Sprintf("%s, which %s asks for %s,", probe.URL, node.Name, probe.Upstream)
	switch {
	case probe.Status == 0:
		found.Problem = who + " does not answer there."
		found.Details = []string{fmt.Sprintf("%s (after %.2fs)", strings.TrimSpace("curl: "+probe.Problem), probe.Seconds)}
	case probe.Status != 200 && probe.Status != 401:
		found.Problem = fmt.Sprintf("%s answers with status %d.", who, probe.Status)
	case probe.Seconds >= slowProbe:
		found.Problem = fmt.Sprintf("%s takes %.2fs to answer.", who, probe.Seconds)
	default:
		return found, false
	}
	return found, true
}
