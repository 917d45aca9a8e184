package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var coreDNS = client.ObjectKey{Namespace: "kube-system", Name: "coredns"}

// controlPlaneLabel is the label that kubeadm gives the nodes that run the control plane.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// placeCoreDNS schedules CoreDNS on the control plane, with one pod instead of two. Otherwise both
// pods land on the first Ready node. If that is a worker that a scenario stops, no cache can
// resolve its upstream until the pods run elsewhere. Gardener instead spreads the pods over the
// nodes. Callers must wait for the Deployment afterwards.
func (c *Cluster) placeCoreDNS(ctx context.Context) error {
	var d appsv1.Deployment
	if err := c.client.Get(ctx, coreDNS, &d); err != nil {
		return fmt.Errorf("reading the Deployment of CoreDNS: %w", err)
	}
	before, pod := d.DeepCopy(), &d.Spec.Template.Spec
	d.Spec.Replicas = ptr.To[int32](1)
	pod.NodeSelector = labels.Merge(pod.NodeSelector, labels.Set{controlPlaneLabel: ""})
	if err := c.client.Patch(ctx, &d, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("moving CoreDNS to the control plane: %w", err)
	}
	return nil
}
