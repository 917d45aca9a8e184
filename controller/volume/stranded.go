package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nodeutil "k8s.io/component-helpers/node/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// ReplaceStranded deletes claims that would be unusable forever: a volume on the disk of a node is
// bound to that node, so once the node is gone, a pod with this volume cannot start
// (local-path-provisioner#31). The content can be fetched again. ReplaceStranded deletes the claim
// and its pending pod, and the StatefulSet controller recreates both. Even with an error, it
// returns the claims that it deleted. It continues after a deletion that the shoot refuses; the
// error then satisfies Refused.
//
// It considers only pods that were never scheduled, so it never touches a running cache, and it
// needs a single request if no pod is pending. It does nothing until at least one worker node is
// ready: while a shoot wakes up, machines may still come back. The PersistentVolume is left to its
// provisioner.
func ReplaceStranded(ctx context.Context, shoot client.Client, claims []Claim) ([]Claim, error) {
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, fmt.Errorf("list the pods of the caches in the shoot: %w", err)
	}
	blocking := func(c Claim) int { return slices.IndexFunc(pods.Items, c.blocks) }
	if claims = slices.DeleteFunc(slices.Clone(claims), func(c Claim) bool { return blocking(c) < 0 }); len(claims) == 0 {
		return nil, nil
	}
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("list the nodes of the shoot: %w", err)
	}
	if !slices.ContainsFunc(nodes.Items, isReadyWorker) {
		return nil, nil
	}
	var deleted []Claim
	var refused error
	for _, claim := range claims {
		pod := &pods.Items[blocking(claim)]
		switch stranded, err := claim.stranded(ctx, shoot, nodes.Items); {
		case err != nil:
			return deleted, err
		case !stranded:
			continue
		}
		err := deleteExactly(ctx, shoot, claim.PersistentVolumeClaim)
		if err == nil {
			deleted = append(deleted, claim)
			err = deleteExactly(ctx, shoot, pod)
		}
		if err != nil {
			err = fmt.Errorf("delete claim %s and pod %s in the shoot, whose node is gone: %w", claim.Name, pod.Name, err)
		}
		if err != nil && !Refused(err) {
			return deleted, err
		}
		refused = errors.Join(refused, err)
	}
	return deleted, refused
}

// blocks reports whether the claim has a volume, and the pod that uses the claim has no node.
func (c Claim) blocks(pod corev1.Pod) bool {
	owner := metav1.GetControllerOf(&pod)
	return c.Spec.VolumeName != "" && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && owner != nil && owner.Kind == "StatefulSet" &&
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == c.Name
		})
}

// stranded reports whether no node can use the volume of the claim.
func (c Claim) stranded(ctx context.Context, shoot client.Reader, nodes []corev1.Node) (bool, error) {
	volume := &corev1.PersistentVolume{}
	if err := shoot.Get(ctx, client.ObjectKey{Name: c.Spec.VolumeName}, volume); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read the volume of claim %s in the shoot: %w", c.Name, err)
	}
	return volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == c.UID && limitedToOthers(volume, nodes), nil
}

// IsLocal reports whether the volume is on the disk of a node, and lost with it.
func IsLocal(volume *corev1.PersistentVolume) bool { return limitedToOthers(volume, nil) }

// limitedToOthers reports whether the volume is limited to nodes by name and none of them exists.
// The terms of an affinity are alternatives. Other requirements of a term, such as a zone, do not
// matter: a future node may meet them.
func limitedToOthers(volume *corev1.PersistentVolume, nodes []corev1.Node) bool {
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

// namesNone reports whether the requirement lists host names, none of which belongs to a node.
func namesNone(requirement corev1.NodeSelectorRequirement, nodes []corev1.Node) bool {
	return requirement.Key == corev1.LabelHostname && requirement.Operator == corev1.NodeSelectorOpIn &&
		!slices.ContainsFunc(nodes, func(n corev1.Node) bool { return slices.Contains(requirement.Values, n.Labels[corev1.LabelHostname]) })
}

func isReadyWorker(node corev1.Node) bool {
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	return node.Labels[v1beta1constants.LabelWorkerPool] != "" && node.DeletionTimestamp == nil && ready != nil && ready.Status == corev1.ConditionTrue
}
