package volume

import (
	"context"
	"fmt"
	"slices"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Stranded is a deleted claim whose volume was bound to nodes that no longer exist.
type Stranded struct {
	Upstream, Claim, Volume string
}

// ReplaceStranded deletes claims that would stay unusable forever: a volume on the disk of a node
// is bound to that node, so once the node is gone, a pod with this volume cannot start
// (local-path-provisioner#31). The content can be fetched again. ReplaceStranded deletes the claim
// and its pending pod, and the StatefulSet controller recreates both. Even with an error, it
// returns what it deleted.
//
// It considers only pods that were never scheduled, so it never touches a running cache, and it
// needs a single request if no pod is pending. It does nothing until at least one worker node is
// ready: while a shoot wakes up, machines may still come back. The PersistentVolume is left to its
// provisioner.
func ReplaceStranded(ctx context.Context, shoot client.Client, identities v1alpha3.Identities) ([]Stranded, error) {
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, fmt.Errorf("listing the pods of the caches in the shoot: %w", err)
	}
	waiting := waitingPods(pods.Items, identities)
	if len(waiting) == 0 {
		return nil, nil
	}
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing the nodes of the shoot: %w", err)
	}
	if !slices.ContainsFunc(nodes.Items, isReadyWorker) {
		return nil, nil
	}
	var deleted []Stranded
	for _, pod := range waiting {
		ofPod, err := replaceStrandedOf(ctx, shoot, pod, identities, nodes.Items)
		deleted = append(deleted, ofPod...)
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// waitingPod is an unscheduled pod of a cache.
type waitingPod struct {
	*corev1.Pod
	upstream string
}

func waitingPods(pods []corev1.Pod, identities v1alpha3.Identities) []waitingPod {
	var waiting []waitingPod
	for i := range pods {
		pod := &pods[i]
		owner := metav1.GetControllerOf(pod)
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || owner == nil || owner.Kind != "StatefulSet" {
			continue
		}
		if upstream := identities.Owner(pod.Labels); upstream != "" {
			waiting = append(waiting, waitingPod{pod, upstream})
		}
	}
	return waiting
}

func replaceStrandedOf(
	ctx context.Context, shoot client.Client, pod waitingPod, identities v1alpha3.Identities, nodes []corev1.Node,
) ([]Stranded, error) {
	var deleted []Stranded
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, volume, err := boundClaim(ctx, shoot, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		if err != nil {
			return nil, err
		}
		if volume == nil || identities.Owner(claim.Labels) != pod.upstream || !stranded(volume, nodes) {
			continue
		}
		if err := deleteExactly(ctx, shoot, claim); err != nil {
			return deleted, fmt.Errorf("deleting claim %s in the shoot, whose node is gone: %w", claim.Name, err)
		}
		deleted = append(deleted, Stranded{pod.upstream, claim.Namespace + "/" + claim.Name, volume.Name})
	}
	if len(deleted) == 0 {
		return nil, nil
	}
	if err := deleteExactly(ctx, shoot, pod.Pod); err != nil {
		return deleted, fmt.Errorf("deleting pod %s in the shoot, whose node is gone: %w", pod.Name, err)
	}
	return deleted, nil
}

// boundClaim returns the claim and its volume. The volume is nil if either is missing or they are
// not bound to each other.
func boundClaim(
	ctx context.Context, shoot client.Reader, namespace, name string,
) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	err := shoot.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim)
	if err == nil && claim.Spec.VolumeName != "" {
		err = shoot.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume)
	}
	if apierrors.IsNotFound(err) {
		return claim, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading claim %s and its volume in the shoot: %w", name, err)
	}
	if volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return claim, nil, nil
	}
	return claim, volume, nil
}

// stranded returns whether the volume is limited to nodes by name and none of them exists. The
// terms of an affinity are alternatives. Other requirements of a term, such as a zone, do not
// matter: a future node may meet them.
func stranded(volume *corev1.PersistentVolume, nodes []corev1.Node) bool {
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) == 0 {
		return false
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		if !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return namesNone(r, nodes) }) {
			return false
		}
	}
	return true
}

// namesNone returns whether the requirement lists host names and none of them is that of a node.
func namesNone(requirement corev1.NodeSelectorRequirement, nodes []corev1.Node) bool {
	return requirement.Key == corev1.LabelHostname && requirement.Operator == corev1.NodeSelectorOpIn &&
		!slices.ContainsFunc(nodes, func(n corev1.Node) bool { return slices.Contains(requirement.Values, n.Labels[corev1.LabelHostname]) })
}

func isReadyWorker(node corev1.Node) bool {
	if node.Labels[v1beta1constants.LabelWorkerPool] == "" || node.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
