package finding

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// mirrors compares the hosts.toml files of the workers with the Extension's status and the
// Services.
func mirrors(b *bundle.Bundle) []Finding {
	if b.Hibernated() {
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
			all = append(all, hostsFile(b, node, mirror)...)
		}
	}
	return all
}

// absent reports a cache for which a node has no hosts.toml.
func absent(b *bundle.Bundle, node bundle.Node, cached bundle.Cached) []Finding {
	if slices.ContainsFunc(node.Mirrors, func(m hostsfile.Mirror) bool { return m.Upstream == cached.Upstream }) {
		return nil
	}
	found := Finding{
		Certain: true, File: node.JournalFile("configure-containerd-registries"),
		Problem: fmt.Sprintf("%s has no hosts.toml for %s: its pulls bypass the cache.", node.Name, cached.Upstream),
		Fix:     "see the details and the journal for why the script has not written it",
	}
	i := slices.IndexFunc(node.Registries, func(r nodeconfig.Registry) bool { return r.Upstream == cached.Upstream })
	switch {
	case node.Units[bundle.ScriptUnit].Load != "loaded":
		found.Details = []string{"the node has no unit " + bundle.ScriptUnit +
			": see the OperatingSystemConfig and the journal of gardener-node-agent"}
	case i < 0:
		found.Details = []string{bundle.ScriptUnit + " does not have this upstream: see the OperatingSystemConfig and the journal of gardener-node-agent"}
	default:
		found.Details = []string{"the unit waits for " + node.Registries[i].Endpoint}
	}
	found.Details = append(found.Details, lastMessage(b, node, cached.Upstream)...)
	return []Finding{found}
}

// lastMessage returns the last message of the script about an upstream, if there is one.
func lastMessage(b *bundle.Bundle, node bundle.Node, upstream string) (last []string) {
	for _, line := range b.Journal(node, "configure-containerd-registries") {
		if strings.HasPrefix(line.Message, upstream+":") {
			last = []string{"last message of the script: " + line.Time.Format(time.TimeOnly) + " " + line.Message}
		}
	}
	return last
}

// hostsFile reports a hosts.toml that is damaged, stale or wrong.
func hostsFile(b *bundle.Bundle, node bundle.Node, mirror hostsfile.Mirror) []Finding {
	found := Finding{Certain: true, File: node.File(bundle.CertsFile)}
	name := fmt.Sprintf("hosts.toml on %s for %s", node.Name, mirror.Upstream)
	i := slices.IndexFunc(b.Cached(), func(c bundle.Cached) bool { return c.Upstream == mirror.Upstream })
	switch {
	case mirror.Problem != "":
		found.Problem = fmt.Sprintf("The %s is damaged: %s.", name, mirror.Problem)
		found.Fix = "delete the file; the script writes it again if the upstream has a cache"
		return []Finding{found}
	case !mirror.Managed && i >= 0:
		found.Problem, found.Certain = fmt.Sprintf("The %s is unmanaged: pulls go where it points, and the script does not change it.", name),
			false
		found.Fix = "delete the file if pulls should use the cache; the script then writes its own"
		return []Finding{found}
	case !mirror.Managed:
		return nil
	case i < 0 && b.Seed.Known:
		found.Problem = fmt.Sprintf("The %s is stale: no cache has this upstream.", name)
		found.Fix = reconcile
		return []Finding{found}
	}
	if all := stale(b, mirror, found, name); len(all) > 0 {
		return all
	}
	return content(b, node, mirror, name)
}

// stale reports addresses that no Service of the cache has. Nothing answers there, and each request
// of containerd waits for a dial timeout.
func stale(b *bundle.Bundle, mirror hostsfile.Mirror, found Finding, name string) []Finding {
	if !b.Shoot.Known {
		return nil
	}
	for _, host := range mirror.Hosts {
		address := hostOf(host)
		if other := cacheAt(b.Shoot.CacheServices(), address); other != "" && other != mirror.Upstream {
			found.Problem, found.Fix = fmt.Sprintf("The %s points to %s, which is the cache of %s.", name, address, other), reconcile
			return []Finding{found}
		}
		if slices.ContainsFunc(b.Shoot.Services, func(s corev1.Service) bool { return slices.Contains(s.Spec.ClusterIPs, address) }) {
			continue
		}
		found.Problem = fmt.Sprintf("The %s points to %s, which no Service has: "+
			"each request waits for a dial timeout and then goes to the upstream.", name, address)
		for _, service := range b.Shoot.CacheServices() {
			if service.Annotations[v1alpha3.AnnotationUpstream] == mirror.Upstream {
				found.Details = []string{"the Service " + created(service)}
			}
		}
		found.Fix = reconcile
		return []Finding{found}
	}
	return nil
}

// probes reports hosts of a hosts.toml that did not answer the node, or answered slowly or with an
// error, when the bundle was collected.
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

// slowProbe is when an answer to GET /v2/ is slow, in seconds. It usually takes milliseconds.
const slowProbe = 1.0

func assess(node bundle.Node, probe bundle.Probe) (Finding, bool) {
	managed := slices.ContainsFunc(node.Mirrors, func(m hostsfile.Mirror) bool { return m.Upstream == probe.Upstream && m.Managed })
	found := Finding{Certain: managed, File: node.File(bundle.ProbeFile)}
	who := fmt.Sprintf("%s, which asks it for %s", node.Name, probe.Upstream)
	switch {
	case probe.Status == 0:
		found.Problem = fmt.Sprintf("%s does not answer %s.", probe.URL, who)
		found.Details = []string{fmt.Sprintf("%s (after %.2fs)", strings.TrimSpace("curl: "+probe.Problem), probe.Seconds)}
	case probe.Status != 200 && probe.Status != 401:
		found.Problem = fmt.Sprintf("%s answers %s, with status %d.", probe.URL, who, probe.Status)
	case probe.Seconds >= slowProbe:
		found.Problem = fmt.Sprintf("%s takes %.2fs to answer %s.", probe.URL, probe.Seconds, who)
	default:
		return found, false
	}
	return found, true
}
