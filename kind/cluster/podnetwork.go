package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// routeProtocol marks the testbed's routes. Numbers above 4 are for user space, see ip-route(8).
const routeProtocol = "99"

// conflistPath is the CNI configuration. Its name sorts first: containerd uses the first file.
const conflistPath = "/etc/cni/net.d/10-testbed.conflist"

// egressRange contains a second, IPv4 address for each pod of an IPv6 cluster, for traffic that
// leaves the cluster: CoreDNS forwards to the engine's DNS, which answers only on IPv4. EKS uses
// the same range. All nodes share it and nothing routes to it: packets leave with the node's
// address.
const egressRange = "169.254.172.0/22"

type address struct {
	node          string
	ips, podCIDRs []string
}

// conflist returns a node's CNI configuration: each pod has a point-to-point link to the node and
// an address from each of the node's pod CIDRs. Pods cannot have host ports. A restart of the node
// frees the addresses, since their state is below /run.
func conflist(podCIDRs []string) ([]byte, error) {
	subnets, routes := [][]map[string]string{}, []map[string]string{}
	for _, subnet := range podRanges(podCIDRs) {
		subnets = append(subnets, []map[string]string{{"subnet": subnet}})
		everything := "0.0.0.0/0"
		if isIPv6(subnet) {
			everything = "::/0"
		}
		routes = append(routes, map[string]string{"dst": everything})
	}
	ipam := map[string]any{"type": "host-local", "dataDir": "/run/cni-ipam-state", "routes": routes, "ranges": subnets}
	return json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       "testbed",
		"plugins":    []map[string]any{{"type": "ptp", "ipam": ipam}},
	}, "", "  ")
}

func isIPv4(address string) bool { return !isIPv6(address) }

// route is one entry of `ip -json route show`.
type route struct {
	Destination string `json:"dst"`
	Gateway     string `json:"gateway"`
}

// routesOf returns the routes that the node needs: one to each pod CIDR of every other node.
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

// routeCommands returns the commands that change the testbed's routes from present to wanted.
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

// podCIDRTimeout bounds how long kube-controller-manager may take to give each node a pod CIDR.
const podCIDRTimeout = 60 * time.Second

// applyPodNetwork updates each node's CNI configuration and routes to the current pod CIDRs. A node
// that rejoined may have a different CIDR than before. Nodes of stock images use kind's network.
func (c *Cluster) applyPodNetwork(ctx context.Context) error {
	if c.stock {
		return nil
	}
	c.podNetwork.Lock()
	defer c.podNetwork.Unlock()
	all, err := c.addresses(ctx)
	if err != nil {
		return err
	}
	return progress.ForEach(ctx, all, func(ctx context.Context, a address) error {
		return c.Node(a.node).applyPodNetwork(ctx, a.podCIDRs, routesOf(a.node, all))
	})
}

// addresses waits until each Node object has a pod CIDR, then returns all nodes' addresses.
func (c *Cluster) addresses(ctx context.Context) ([]address, error) {
	var all []address
	err := await(ctx, "pod CIDRs of all nodes", podCIDRTimeout, func(ctx context.Context) string {
		var list corev1.NodeList
		if err := c.client.List(ctx, &list); err != nil {
			return err.Error()
		}
		all = nil
		for _, node := range list.Items {
			if len(node.Spec.PodCIDRs) == 0 {
				return node.Name
			}
			if c.Node(node.Name) != nil {
				all = append(all, address{node: node.Name, podCIDRs: node.Spec.PodCIDRs})
			}
		}
		return ""
	})
	if err != nil {
		return nil, err
	}
	// Ask the engine: after the engine restarts, Node objects contain stale addresses for a while.
	for i := range all {
		if all[i].ips, err = c.Node(all[i].node).addresses(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (n *Node) applyPodNetwork(ctx context.Context, podCIDRs []string, wanted []route) error {
	config, err := conflist(podCIDRs)
	if err != nil {
		return err
	}
	present, err := n.ReadFile(ctx, conflistPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(present, config) {
		if err := n.WriteFile(ctx, conflistPath, 0o644, config); err != nil {
			return err
		}
	}

	if err := n.applyMasquerade(ctx, podRanges(podCIDRs)); err != nil {
		return err
	}
	routes, err := n.podRoutes(ctx, slices.ContainsFunc(podCIDRs, isIPv6))
	if err != nil {
		return err
	}
	for _, argv := range routeCommands(routes, wanted) {
		if _, err := n.Exec(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) podRoutes(ctx context.Context, ipv6 bool) ([]route, error) {
	families := [][]string{{"ip", "-json"}}
	if ipv6 {
		families = append(families, []string{"ip", "-6", "-json"})
	}
	var all []route
	for _, ip := range families {
		out, err := n.Exec(ctx, append(ip, "route", "show", "proto", routeProtocol)...)
		if err != nil {
			return nil, err
		}
		routes, err := parseRoutes(out)
		if err != nil {
			return nil, err
		}
		all = append(all, routes...)
	}
	return all, nil
}
