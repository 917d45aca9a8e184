package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
)

// routeProtocol marks our routes among the node's own; numbers above 4 are for user space, see ip-route(8).
const routeProtocol = "99"

// conflistPath sorts before anything else that might lie there: the container runtime takes the first file.
const conflistPath = "/etc/cni/net.d/10-testbed.conflist"

// egressRange is where pods of a cluster of IPv6 have a second address, for IPv4 beyond the cluster: the engine answers names on
// IPv4 only, and CoreDNS asks it. Nobody routes to it, and each node has the same: packets leave with the address of the node, as on
// EKS, whose range it is.
const egressRange = "169.254.172.0/22"

// address is what the pod network needs to know of a node: its addresses, and the ranges of its pods.
type address struct {
	node          string
	ips, podCIDRs []string
}

// conflist returns the CNI configuration of one node: each pod has a point-to-point link to the node, with an address of
// each of the node's ranges. host-local's state lies below /run, so that addresses are free again after a restart of the node.
func conflist(podCIDRs []string) ([]byte, error) {
	ranges := slices.Clone(podCIDRs)
	if !slices.ContainsFunc(ranges, isIPv4) {
		ranges = append(ranges, egressRange)
	}
	subnets, routes := [][]map[string]string{}, []map[string]string{}
	for _, subnet := range ranges {
		subnets = append(subnets, []map[string]string{{"subnet": subnet}})
		routes = append(routes, map[string]string{"dst": everywhere(subnet)})
	}
	config := map[string]any{
		"cniVersion": "1.0.0",
		"name":       "testbed",
		"plugins": []map[string]any{
			{
				"type":   "ptp",
				"ipMasq": true,
				"ipam": map[string]any{
					"type":    "host-local",
					"dataDir": "/run/cni-ipam-state",
					"routes":  routes,
					"ranges":  subnets,
				},
			},
			{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}},
		},
	}
	return json.MarshalIndent(config, "", "  ")
}

func isIPv4(address string) bool { return !isIPv6(address) }

// everywhere is the destination of a default route of the family of the range.
func everywhere(subnet string) string {
	if isIPv6(subnet) {
		return "::/0"
	}
	return "0.0.0.0/0"
}

// route is a line of `ip -json route show`.
type route struct {
	Destination string `json:"dst"`
	Gateway     string `json:"gateway"`
}

// routesOf returns the routes that the node needs: one to each other node's pods, for each IP family that they have.
func routesOf(node string, all []address) []route {
	var routes []route
	for _, other := range all {
		if other.node == node {
			continue
		}
		for _, podCIDR := range other.podCIDRs {
			family := func(ip string) bool { return isIPv6(ip) == isIPv6(podCIDR) }
			if i := slices.IndexFunc(other.ips, family); i >= 0 {
				routes = append(routes, route{podCIDR, other.ips[i]})
			}
		}
	}
	return routes
}

// routeCommands returns the commands that turn the present routes of ours into the wanted ones.
func routeCommands(present, wanted []route) [][]string {
	var commands [][]string
	for _, r := range present {
		if !slices.Contains(wanted, r) {
			commands = append(commands, r.command("del"))
		}
	}
	for _, r := range wanted {
		if !slices.Contains(present, r) {
			commands = append(commands, r.command("replace"))
		}
	}
	return commands
}

func (r route) command(verb string) []string {
	argv := []string{"ip"}
	if isIPv6(r.Destination) {
		argv = append(argv, "-6")
	}
	return append(argv, "route", verb, r.Destination, "via", r.Gateway, "proto", routeProtocol)
}

func parseRoutes(output string) ([]route, error) {
	if output == "" {
		return nil, nil
	}
	var routes []route
	if err := json.Unmarshal([]byte(output), &routes); err != nil {
		return nil, fmt.Errorf("decoding routes: %w", err)
	}
	return routes, nil
}
