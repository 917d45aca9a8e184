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

// completedMarker lies on a node's tmpfs: it is gone when the container has been restarted.
const completedMarker = "/run/registry-cache-testbed"

// controllers are those that the state of all other objects depends on, by the names of their leases.
var controllers = []string{"kube-controller-manager", "kube-scheduler"}

// restarted tells whether a node was restarted since the cluster was completed, by the engine for example.
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

// waitForHeartbeats waits until each node and controller has shown since the given time that it lives. After a restart
// the objects in etcd tell of the time before: nodes look Ready and pods available that have not even started.
func (c *Cluster) waitForHeartbeats(ctx context.Context, since time.Time) error {
	var wanted []client.ObjectKey
	for _, name := range controllers {
		wanted = append(wanted, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name})
	}
	for _, n := range c.nodes {
		wanted = append(wanted, n.lease())
	}
	return await(ctx, "signs of life in "+c.name, usableTimeout, func(ctx context.Context) string {
		var leases coordinationv1.LeaseList
		if err := c.client.List(ctx, &leases); err != nil {
			return err.Error()
		}
		return strings.Join(silent(leases.Items, wanted, since), ", ")
	})
}

// lease is what the node's kubelet renews.
func (n *Node) lease() client.ObjectKey {
	return client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: n.Name()}
}

// waitForRegistration waits until the node's kubelet has made the Node object since then, or has shown that it uses the
// one that nobody deleted and that tells of the time before.
func (c *Cluster) waitForRegistration(ctx context.Context, n *Node, since time.Time) error {
	return await(ctx, "registration of "+n.Name(), usableTimeout, func(ctx context.Context) string {
		var node corev1.Node
		if err := c.client.Get(ctx, client.ObjectKey{Name: n.Name()}, &node); err != nil {
			return err.Error()
		}
		// Its time of creation is in whole seconds.
		if !node.CreationTimestamp.Time.Before(since.Truncate(time.Second)) {
			return ""
		}
		var lease coordinationv1.Lease
		if err := c.client.Get(ctx, n.lease(), &lease); err != nil {
			return err.Error()
		}
		return strings.Join(silent([]coordinationv1.Lease{lease}, []client.ObjectKey{n.lease()}, since), "")
	})
}

// silent returns the names of those wanted leases that were not renewed since then.
func silent(leases []coordinationv1.Lease, wanted []client.ObjectKey, since time.Time) []string {
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
