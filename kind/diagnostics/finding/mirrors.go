package finding

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// mirrors compares the hosts.toml files of the workers with the Extension's status, the Services,
// and the arguments of the unit that writes these files.
func mirrors(b *bundle.Bundle) (all []Finding) {
	for _, node := range b.Workers() {
		if !node.MirrorsKnown {
			continue
		}
		for _, cached := range b.Cached() {
			if _, found := node.Mirror(cached.Upstream); !found {
				all = append(all, absent(b, node, cached))
			}
		}
		for _, mirror := range node.Mirrors {
			all = append(all, hostsFile(b, node, mirror)...)
		}
		if dead := node.State.Dead(); dead != "" && node.Units[bundle.ScriptUnit].Active == "active" {
			all = append(all, problem(node.JournalFile("configure-containerd-registries"), "see the journal, and restart the unit on the node",
				"The unit %s on %s is active, but %s: nobody notices a cache that stops answering.", bundle.ScriptUnit, node.Name, dead))
		}
	}
	return all
}

func absent(b *bundle.Bundle, node bundle.Node, cached bundle.Cached) Finding {
	found := problem(node.JournalFile("configure-containerd-registries"), "see the details and the journal for why the script has not written it",
		"%s has no hosts.toml for %s: its pulls bypass the cache.", node.Name, cached.Upstream)
	registry, known := node.Registry(cached.Upstream)
	switch {
	case node.Units[bundle.ScriptUnit].Load != "loaded":
		found = found.with("the node has no unit " + bundle.ScriptUnit + ": see the OperatingSystemConfig and the journal of gardener-node-agent")
	case !known:
		found = found.with(bundle.ScriptUnit + " does not have this upstream: see the OperatingSystemConfig and the journal of gardener-node-agent")
	default:
		found = found.with("the unit has the endpoint " + registry.Endpoint)
	}
	return found.with(said(b, node, cached.Upstream)...)
}

// said returns what the script says of an upstream: its state, or its last message.
func said(b *bundle.Bundle, node bundle.Node, upstream string) (last []string) {
	for _, state := range node.State.Upstreams {
		if state.Upstream == upstream {
			return []string{"state of the script: " + state.String()}
		}
	}
	for _, line := range b.Journal(node, "configure-containerd-registries") {
		if strings.HasPrefix(line.Message, upstream+":") {
			last = []string{"last message of the script: " + line.Time.Format(time.TimeOnly) + " " + line.Message}
		}
	}
	return last
}

// hostsFile reports a hosts.toml that is damaged, unmanaged, stale or wrong.
func hostsFile(b *bundle.Bundle, node bundle.Node, mirror nodeconfig.HostConfig) []Finding {
	file, name := node.File(bundle.CertsFile), fmt.Sprintf("hosts.toml on %s for %s", node.Name, mirror.Upstream)
	i := slices.IndexFunc(b.Cached(), func(c bundle.Cached) bool { return c.Upstream == mirror.Upstream })
	switch {
	case mirror.Problem != "":
		return []Finding{problem(file, "delete the file; the script writes it again if the upstream has a cache",
			"The %s is damaged: %s.", name, mirror.Problem)}
	case !mirror.Managed && i >= 0:
		found := hint(file, "The %s is unmanaged: pulls go where it points, and the script does not change it.", name)
		found.Fix = "delete the file if pulls should use the cache; the script then writes its own"
		return []Finding{found}
	case !mirror.Managed:
		return nil
	case i < 0 && b.Seed.Known:
		return []Finding{problem(file, reconcile, "The %s is stale: no cache has this upstream.", name)}
	}
	if all := stale(b, mirror, file, name); len(all) > 0 {
		return all
	}
	return content(b, node, mirror, file, name)
}

// stale reports a hosts.toml with the address of another cache, or with an address that no Service
// has. Such an address does not answer: each request of containerd waits for a dial timeout.
func stale(b *bundle.Bundle, mirror nodeconfig.HostConfig, file, name string) []Finding {
	if !b.Shoot.Known {
		return nil
	}
	for _, host := range mirror.Hosts {
		address := hostOf(host)
		if other := cacheAt(b.Shoot.CacheServices(), address); other != "" && other != mirror.Upstream {
			return []Finding{problem(file, reconcile, "The %s points to %s, which is the cache of %s.", name, address, other)}
		}
		if slices.ContainsFunc(b.Shoot.Services, func(s corev1.Service) bool { return slices.Contains(s.Spec.ClusterIPs, address) }) {
			continue
		}
		found := problem(file, reconcile, "The %s points to %s, which no Service has: each request waits for a dial timeout and then "+
			"goes to the upstream.", name, address)
		if service, exists := b.Shoot.CacheService(mirror.Upstream); exists {
			found = found.with("the Service " + created(service))
		}
		return []Finding{found}
	}
	return nil
}

// content reports a managed hosts.toml that differs from what the node's unit would now write, and
// a unit whose endpoint differs from that in the Extension's status.
func content(b *bundle.Bundle, node bundle.Node, mirror nodeconfig.HostConfig, file, name string) []Finding {
	registry, found := node.Registry(mirror.Upstream)
	if !found {
		return nil
	}
	is, wanted, direct := node.HostsFiles[mirror.Upstream], hostsTOML(registry), registry
	direct.Endpoint = ""
	if same(is, wanted) {
		for _, cached := range b.Cached() {
			if cached.Upstream == registry.Upstream && cached.Endpoint != registry.Endpoint {
				return []Finding{problem(node.File(bundle.ScriptUnit), reconcile, "The unit %s on %s has %s for %s, but the Extension's status "+
					"has %s: the node has not applied the newest OperatingSystemConfig.",
					bundle.ScriptUnit, node.Name, registry.Endpoint, registry.Upstream, cached.Endpoint)}
			}
		}
		return nil
	}
	differs := problem(file, "see in the journal of "+bundle.ScriptUnit+" why the script has not corrected it, which takes seconds",
		"The %s is not what the script writes.", name).with(difference(is, wanted))
	if same(is, hostsTOML(direct)) {
		differs = problem(file, "fix the cache or the network between it and the node; the script then adds it within seconds",
			"The %s has no cache: the script got no answer from %s.", name, registry.Endpoint)
	}
	return []Finding{differs.with(said(b, node, mirror.Upstream)...)}
}

// same compares texts without their surrounding white space, which `tail -v` adds.
func same(is, wanted string) bool { return strings.TrimSpace(is) == strings.TrimSpace(wanted) }

func difference(is, wanted string) string {
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
	return fmt.Sprintf("line %d is %s, want %s", i+1, line(have), line(want))
}

// hostsTOML returns the hosts.toml that the script writes for a registry without CA bundles.
func hostsTOML(r nodeconfig.Registry) string {
	text := nodeconfig.Marker + "\n# Do not edit: this file goes away with the registry cache.\n" + fmt.Sprintf("server = %q\n", r.UpstreamURL)
	if r.Endpoint == "" {
		return text
	}
	return text + fmt.Sprintf("\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n  dial_timeout = \"500ms\"\n", r.Endpoint)
}
