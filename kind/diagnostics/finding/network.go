package finding

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// slowProbe is the time in seconds after which an answer to GET /v2/ counts as slow. An answer
// usually takes milliseconds.
const slowProbe = 1.0

func probes(b *bundle.Bundle) (all []Finding) {
	for _, node := range b.Workers() {
		for _, probe := range node.Probes {
			file, who := node.File(bundle.ProbeFile), fmt.Sprintf("%s, which asks it for %s", node.Name, probe.Upstream)
			var found Finding
			switch {
			case probe.Status == 0:
				found = problem(file, "", "%s does not answer %s.", probe.URL, who).
					with(fmt.Sprintf("%s (after %.2fs)", strings.TrimSpace("curl: "+probe.Problem), probe.Seconds))
			case probe.Status != 200 && probe.Status != 401:
				found = problem(file, "", "%s answers %s, with status %d.", probe.URL, who, probe.Status)
			case probe.Seconds >= slowProbe:
				found = problem(file, "", "%s takes %.2fs to answer %s.", probe.URL, probe.Seconds, who)
			default:
				continue
			}
			mirror, _ := node.Mirror(probe.Upstream)
			found.Certain = mirror.Managed
			all = append(all, found)
		}
	}
	return all
}

// routes reports nodes whose route to the pods of another node is missing or wrong. Requests of
// such a node to a Service reach no pod, or another pod with the same address.
func routes(b *bundle.Bundle) (all []Finding) {
	for _, node := range b.Nodes {
		if len(node.Routes) == 0 || !strings.Contains(node.Name, "-shoot-") {
			continue
		}
		for _, other := range b.Shoot.Nodes {
			if other.Name != node.Name {
				all = append(all, route(b, node, other)...)
			}
		}
	}
	return all
}

func route(b *bundle.Bundle, node bundle.Node, other corev1.Node) (all []Finding) {
	file, to := node.File(bundle.RouteFile), b.ShortName(other.Name)
	for _, podCIDR := range other.Spec.PodCIDRs {
		prefix, err := netip.ParsePrefix(podCIDR)
		if err != nil || prefix.Addr().Is6() {
			continue
		}
		switch line := node.Routes[podCIDR]; {
		case line == "":
			all = append(all, problem(file, "testbed up", "%s has no route to the pods of %s (%s).", node.Name, to, podCIDR))
		case !leadsTo(line, other):
			all = append(all, problem(file, "testbed up", "The route on %s to the pods of %s (%s) does not go to that node.", node.Name, to, podCIDR).
				with("the route is "+line))
		}
	}
	return all
}

func leadsTo(line string, node corev1.Node) bool {
	words := strings.Fields(line)
	i := slices.Index(words, "via") + 1
	return i > 0 && i < len(words) &&
		slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == words[i] })
}

// firewalls reports firewall tables that only one worker has, since workers should not differ.
func firewalls(b *bundle.Bundle) []Finding {
	have := map[string]int{}
	workers := b.Workers()
	for _, node := range workers {
		for _, table := range node.Tables {
			have[table]++
		}
	}
	var all []Finding
	for _, node := range workers {
		var extra []string
		for _, table := range node.Tables {
			if have[table] == 1 && len(workers) > 1 {
				extra = append(extra, "table "+table)
			}
		}
		if len(extra) > 0 {
			all = append(all, hint(node.File(bundle.FirewallFile), "%s has firewall rules that no other worker has.", node.Name).with(extra...))
		}
	}
	return all
}
