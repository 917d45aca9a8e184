package cluster

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completedMarker is on a node's tmpfs, so it is gone after a restart of the container.
const completedMarker = "/run/registry-cache-testbed"

// controllers are the lease names of the controllers that all other objects' status depends on.
var controllers = []string{"kube-controller-manager", "kube-scheduler"}

// restarted reports whether a node was restarted, for example by the engine, since the cluster was
// completed.
func (c *Cluster) restarted(ctx context.Context) (bool, error) {
	for _, n := range c.nodes {
		_, err := n.ReadFile(ctx, completedMarker)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (c *Cluster) markCompleted(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range c.nodes {
		group.Go(func() error { return n.WriteFile(ctx, completedMarker, 0o644, nil) })
	}
	return group.Wait()
}

// waitForHeartbeats waits until each node and controller has renewed its lease after since. After a
// restart, etcd still holds the old status: nodes look Ready and pods available that have not even
// started.
func (c *Cluster) waitForHeartbeats(ctx context.Context, since time.Time) error {
	var wanted []client.ObjectKey
	for _, name := range controllers {
		wanted = append(wanted, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name})
	}
	for _, n := range c.nodes {
		wanted = append(wanted, n.lease())
	}
	return await(ctx, "lease renewals in "+c.name, usableTimeout, func(ctx context.Context) string {
		var leases coordinationv1.LeaseList
		if err := c.client.List(ctx, &leases); err != nil {
			return err.Error()
		}
		return strings.Join(notRenewed(leases.Items, wanted, since), ", ")
	})
}

// lease is the key of the lease that the node's kubelet renews.
func (n *Node) lease() client.ObjectKey {
	return client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: n.Name()}
}

// waitForRegistration waits until the node's kubelet has created its Node object after since, or
// has renewed its lease and so uses an existing Node object that nobody deleted.
func (c *Cluster) waitForRegistration(ctx context.Context, n *Node, since time.Time) error {
	return await(ctx, "registration of "+n.Name(), usableTimeout, func(ctx context.Context) string {
		var node corev1.Node
		if err := c.client.Get(ctx, client.ObjectKey{Name: n.Name()}, &node); err != nil {
			return err.Error()
		}
		// creationTimestamp has whole seconds.
		if !node.CreationTimestamp.Time.Before(since.Truncate(time.Second)) {
			return ""
		}
		var lease coordinationv1.Lease
		if err := c.client.Get(ctx, n.lease(), &lease); err != nil {
			return err.Error()
		}
		return strings.Join(notRenewed([]coordinationv1.Lease{lease}, []client.ObjectKey{n.lease()}, since), "")
	})
}

// notRenewed returns the names of the wanted leases that were not renewed after since.
func notRenewed(leases []coordinationv1.Lease, wanted []client.ObjectKey, since time.Time) []string {
	renewed := map[client.ObjectKey]bool{}
	for _, lease := range leases {
		if lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(since) {
			renewed[client.ObjectKeyFromObject(&lease)] = true
		}
	}
	var names []string
	for _, key := range wanted {
		if !renewed[key] {
			names = append(names, key.Name)
		}
	}
	return names
}
