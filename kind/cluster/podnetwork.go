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

// address is what the pod network needs to know of a node.
type address struct {
	node, ip, podCIDR string
}

// conflist returns the CNI configuration of one node: each pod has a point-to-point link to the node, with an address of
// the node's range. host-local's state lies below /run, so that addresses are free again after a restart of the node.
func conflist(podCIDR string) ([]byte, error) {
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
					"routes":  []map[string]string{{"dst": "0.0.0.0/0"}},
					"ranges":  [][]map[string]string{{{"subnet": podCIDR}}},
				},
			},
			{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}},
		},
	}
	return json.MarshalIndent(config, "", "  ")
}

// route is a line of `ip -json route show`.
type route struct {
	Destination string `json:"dst"`
	Gateway     string `json:"gateway"`
}

// routesOf returns the routes that the node needs: one to each other node's pods.
func routesOf(node string, all []address) []route {
	var routes []route
	for _, other := range all {
		if other.node != node {
			routes = append(routes, route{other.podCIDR, other.ip})
		}
	}
	return routes
}

// routeCommands returns the commands that turn the present routes of ours into the wanted ones.
func routeCommands(present, wanted []route) [][]string {
	var commands [][]string
	for _, r := range present {
		if !slices.Contains(wanted, r) {
			commands = append(commands, []string{"ip", "route", "del", r.Destination, "via", r.Gateway, "proto", routeProtocol})
		}
	}
	for _, r := range wanted {
		if !slices.Contains(present, r) {
			commands = append(commands, []string{"ip", "route", "replace", r.Destination, "via", r.Gateway, "proto", routeProtocol})
		}
	}
	return commands
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
