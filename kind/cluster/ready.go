package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	apiTimeout    = 60 * time.Second
	usableTimeout = 2 * time.Minute
)

// await calls the function problem repeatedly until it returns "".
func await(ctx context.Context, what string, timeout time.Duration, problem func(ctx context.Context) string) error {
	last := "not asked yet"
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		last = problem(ctx)
		return last == "", nil
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("wait up to %s for %s: %s: %w", timeout, what, last, err)
	}
	return nil
}

func (c *Cluster) waitForAPI(ctx context.Context) error {
	api, err := discovery.NewDiscoveryClientForConfig(c.rest)
	if err != nil {
		return err
	}
	return await(ctx, "the API server of "+c.name, apiTimeout, func(ctx context.Context) string {
		if _, err := api.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (c *Cluster) waitForReadyNodes(ctx context.Context, names ...string) error {
	return await(ctx, "Ready nodes in "+c.name, usableTimeout, func(ctx context.Context) string {
		var list corev1.NodeList
		if err := c.client.List(ctx, &list); err != nil {
			return err.Error()
		}
		return strings.Join(unreadyNodes(list.Items, names), ", ")
	})
}

// NodeReady reports whether the node is Ready. If it is not, why is the reason and message of its
// Ready condition, or "" if it has no such condition.
func NodeReady(node *corev1.Node) (ready bool, why string) {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return true, ""
		}
		if condition.Type == corev1.NodeReady {
			return false, condition.Reason + ": " + condition.Message
		}
	}
	return false, ""
}

func unreadyNodes(list []corev1.Node, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(list, func(node corev1.Node) bool {
			ready, _ := NodeReady(&node)
			return node.Name == name && ready
		})
	})
}

// kubeProxy is the key of kube-proxy's DaemonSet.
var kubeProxy = client.ObjectKey{Namespace: "kube-system", Name: "kube-proxy"}

// deployments are the keys of the Deployments that provide DNS and volumes.
var deployments = []client.ObjectKey{
	coreDNS,
	{Namespace: "local-path-storage", Name: "local-path-provisioner"}, // kind applies it from the node image
}

// waitUntilUsable waits until all nodes are Ready, and deployments and kube-proxy are available.
func (c *Cluster) waitUntilUsable(ctx context.Context) error {
	if err := c.waitForReadyNodes(ctx, Names(c.nodes)...); err != nil {
		return err
	}
	return await(ctx, "the workloads of "+c.name, usableTimeout, func(ctx context.Context) string {
		var problems []string
		for _, key := range deployments {
			var d appsv1.Deployment
			problems = append(problems, c.problem(ctx, key, &d, &d.Status.ObservedGeneration, func() string {
				return rollout(key, *d.Spec.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
			}))
		}
		var proxy appsv1.DaemonSet
		problems = append(problems, c.problem(ctx, kubeProxy, &proxy, &proxy.Status.ObservedGeneration, func() string {
			// Count the nodes: the desired number in the status may be stale after a node has rejoined.
			return rollout(kubeProxy, int32(len(c.nodes)), proxy.Status.UpdatedNumberScheduled, proxy.Status.NumberAvailable)
		}))
		return strings.Join(slices.DeleteFunc(problems, func(p string) bool { return p == "" }), ", ")
	})
}

// problem reads the workload and returns what is wrong with it, or "".
func (c *Cluster) problem(ctx context.Context, key client.ObjectKey, workload client.Object, observed *int64, rollout func() string) string {
	if err := c.client.Get(ctx, key, workload); err != nil {
		return err.Error()
	}
	if *observed < workload.GetGeneration() {
		return key.String() + " is being updated"
	}
	return rollout()
}

// rollout describes missing and outdated pods, or returns "".
func rollout(key client.ObjectKey, wanted, updated, available int32) string {
	if updated < wanted || available < wanted {
		return fmt.Sprintf("%s has %d of %d pods available, %d updated", key, available, wanted, updated)
	}
	return ""
}

// waitForRegistration waits until the node's kubelet has created the Node object or renewed the
// node's lease after the time since.
func (c *Cluster) waitForRegistration(ctx context.Context, n *Node, since time.Time) error {
	return await(ctx, "registration of "+n.Name(), usableTimeout, func(ctx context.Context) string {
		var node corev1.Node
		if err := c.client.Get(ctx, client.ObjectKey{Name: n.Name()}, &node); err != nil {
			return err.Error()
		}
		// creationTimestamp contains only whole seconds.
		if !node.CreationTimestamp.Time.Before(since.Truncate(time.Second)) {
			return ""
		}
		var lease coordinationv1.Lease
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: n.Name()}, &lease); err != nil {
			return err.Error()
		}
		if renewed := lease.Spec.RenewTime; renewed == nil || !renewed.After(since) {
			return "its lease is not renewed"
		}
		return ""
	})
}
