package cluster

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

// podCIDRTimeout is the time that the controller manager has to give each node its range of pod addresses.
const podCIDRTimeout = 60 * time.Second

// applyPodNetwork makes each node's CNI configuration and routes those of the ranges that the nodes have now. A node
// that has joined again may have another range than before.
func (c *Cluster) applyPodNetwork(ctx context.Context) error {
	c.podNetwork.Lock()
	defer c.podNetwork.Unlock()
	all, err := c.addresses(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range all {
		group.Go(func() error { return c.node(a.node).applyPodNetwork(ctx, a.podCIDRs, routesOf(a.node, all)) })
	}
	return group.Wait()
}

// addresses waits until each Node object that exists has a range of pod addresses.
func (c *Cluster) addresses(ctx context.Context) ([]address, error) {
	var all []address
	err := await(ctx, "the nodes' ranges of pod addresses", podCIDRTimeout, func(ctx context.Context) string {
		var list corev1.NodeList
		if err := c.client.List(ctx, &list); err != nil {
			return err.Error()
		}
		all = nil
		for _, node := range list.Items {
			if len(node.Spec.PodCIDRs) == 0 {
				return node.Name
			}
			if c.node(node.Name) != nil {
				all = append(all, address{node: node.Name, podCIDRs: node.Spec.PodCIDRs})
			}
		}
		return ""
	})
	if err != nil {
		return nil, err
	}
	// The engine knows a node's address at once; the Node object's is old for a while after the engine has restarted.
	for i := range all {
		if all[i].ips, err = c.node(all[i].node).addresses(ctx); err != nil {
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

// podRoutes returns the node's routes of ours.
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
