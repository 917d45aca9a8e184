package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Stranded is a claim that was given up because its volume is bound to nodes that are gone.
type Stranded struct {
	Upstream, Claim, Volume string
}

// ReplaceStranded gives up the claims of caches that wait for ever: a volume on the disk of a node is bound to it, and a
// pod cannot start anywhere else when that node is gone (local-path-provisioner#31). What such a volume holds can be fetched
// again. The claim and the pod that waits are deleted, and the StatefulSet controller makes both anew. It returns what was
// given up, also with an error.
//
// Only claims of pods that were never assigned to a node are looked at, so no cache that runs is touched, and one request
// is enough where none waits. Nothing is decided before a node of a worker pool is ready: while a shoot wakes up, machines
// may still be about to come back. What becomes of the PersistentVolume is up to its provisioner.
func ReplaceStranded(ctx context.Context, shoot client.Client, caches []v1alpha3.RegistryCache) ([]Stranded, error) {
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, fmt.Errorf("listing the pods of the caches in the shoot: %w", err)
	}
	waiting := waitingPods(pods.Items, caches)
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
	var given []Stranded
	for _, pod := range waiting {
		these, err := replaceStrandedOf(ctx, shoot, pod, hostnames(nodes.Items))
		given = append(given, these...)
		if err != nil {
			return given, err
		}
	}
	return given, nil
}

// waitingPod is a pod of a cache that no node was found for.
type waitingPod struct {
	*corev1.Pod
	upstream string
}

func waitingPods(pods []corev1.Pod, caches []v1alpha3.RegistryCache) []waitingPod {
	var waiting []waitingPod
	for i := range pods {
		pod := &pods[i]
		owner := metav1.GetControllerOf(pod)
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || owner == nil || owner.Kind != "StatefulSet" {
			continue
		}
		for _, c := range caches {
			if owner.Name == v1alpha3.Name(c.Upstream) {
				waiting = append(waiting, waitingPod{pod, c.Upstream})
			}
		}
	}
	return waiting
}

func replaceStrandedOf(ctx context.Context, shoot client.Client, pod waitingPod, hosts map[string]bool) ([]Stranded, error) {
	var given []Stranded
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, volume, err := boundClaim(ctx, shoot, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		if err != nil {
			return nil, err
		}
		if volume == nil || claim.Labels[v1alpha3.LabelUpstreamHost] != v1alpha3.HostLabel(pod.upstream) || !stranded(volume, hosts) {
			continue
		}
		if err := shoot.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
			return given, fmt.Errorf("deleting claim %s in the shoot, whose node is gone: %w", claim.Name, err)
		}
		given = append(given, Stranded{pod.upstream, claim.Namespace + "/" + claim.Name, volume.Name})
	}
	if len(given) == 0 {
		return nil, nil
	}
	if err := shoot.Delete(ctx, pod.Pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
		return given, fmt.Errorf("deleting pod %s in the shoot, which waits for a node that is gone: %w", pod.Name, err)
	}
	return given, nil
}

// boundClaim returns the claim and its volume; no volume if one of them is missing or they are not bound to each other.
func boundClaim(
	ctx context.Context, shoot client.Reader, namespace, name string,
) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := shoot.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("reading claim %s in the shoot: %w", name, err)
	}
	if claim.Spec.VolumeName == "" {
		return claim, nil, nil
	}
	if err := shoot.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return claim, nil, nil
		}
		return nil, nil, fmt.Errorf("reading the volume of claim %s in the shoot: %w", name, err)
	}
	if volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return claim, nil, nil
	}
	return claim, volume, nil
}

// stranded says whether the volume can be used on nodes of certain names only, none of which is among the hosts. Each term
// of the affinity is a way to satisfy it. What else a term demands, such as a zone, may be satisfied by a node to come.
func stranded(volume *corev1.PersistentVolume, hosts map[string]bool) bool {
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) == 0 {
		return false
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		if !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return namesNone(r, hosts) }) {
			return false
		}
	}
	return true
}

// namesNone says whether the requirement is a list of hosts of which none is there.
func namesNone(requirement corev1.NodeSelectorRequirement, hosts map[string]bool) bool {
	return requirement.Key == corev1.LabelHostname && requirement.Operator == corev1.NodeSelectorOpIn &&
		!slices.ContainsFunc(requirement.Values, func(host string) bool { return hosts[host] })
}

func hostnames(nodes []corev1.Node) map[string]bool {
	names := map[string]bool{}
	for i := range nodes {
		names[nodes[i].Labels[corev1.LabelHostname]] = true
	}
	return names
}

func isReadyWorker(node corev1.Node) bool {
	if node.Labels[v1beta1constants.LabelWorkerPool] == "" || node.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
