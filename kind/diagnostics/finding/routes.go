package finding

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// routes reports nodes whose route to the pods of another node is missing or wrong. Requests from
// there to a Service reach no pod, or another pod with the same address.
func routes(b *bundle.Bundle) []Finding {
	if b.Hibernated() {
		return nil
	}
	var all []Finding
	for _, node := range b.Nodes {
		if len(node.Routes) == 0 || !strings.Contains(node.Name, "-shoot-") {
			continue
		}
		for _, other := range b.Shoot.Nodes {
			if other.Name == node.Name {
				continue
			}
			all = append(all, route(b, node, other)...)
		}
	}
	return all
}

func route(b *bundle.Bundle, node bundle.Node, other corev1.Node) []Finding {
	var all []Finding
	for _, podCIDR := range other.Spec.PodCIDRs {
		prefix, err := netip.ParsePrefix(podCIDR)
		if err != nil || prefix.Addr().Is6() {
			continue
		}
		line := node.Routes[podCIDR]
		if leadsTo(line, other) {
			continue
		}
		found := Finding{
			Certain: true, Problem: fmt.Sprintf("%s has no route to the pods of %s (%s).", node.Name, b.ShortName(other.Name), podCIDR),
			File: node.File(bundle.RouteFile), Fix: "testbed up",
		}
		if line != "" {
			found.Problem = fmt.Sprintf("The route on %s to the pods of %s (%s) does not go to that node.",
				node.Name, b.ShortName(other.Name), podCIDR)
			found.Details = []string{"the route is " + line}
		}
		all = append(all, found)
	}
	return all
}

func leadsTo(line string, node corev1.Node) bool {
	words := strings.Fields(line)
	for i := 1; i < len(words); i++ {
		for _, address := range node.Status.Addresses {
			if words[i-1] == "via" && words[i] == address.Address {
				return true
			}
		}
	}
	return false
}
