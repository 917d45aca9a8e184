package volume

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// claimsOf returns the claims of all replicas of the cache. It leaves out claims that are being
// deleted: they belong to an earlier cache of the upstream. The StatefulSet controller gives claims
// the labels of the pods.
func claimsOf(ctx context.Context, shoot client.Reader, upstream string) ([]corev1.PersistentVolumeClaim, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := shoot.List(ctx, claims, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{v1alpha3.LabelUpstreamHost: v1alpha3.HostLabel(upstream)}); err != nil {
		return nil, fmt.Errorf("listing the claims of the cache of %s in the shoot: %w", upstream, err)
	}
	return slices.DeleteFunc(claims.Items, func(c corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil }), nil
}

// setOf returns the StatefulSet of the cache, or nil if there is none.
func setOf(ctx context.Context, shoot client.Reader, upstream string) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	err := shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: v1alpha3.Name(upstream)}, set)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the StatefulSet of the cache of %s in the shoot: %w", upstream, err)
	}
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // nil means not found
	}
	return set, nil
}

func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// outdated returns whether the StatefulSet's claim template requests less than the size. The
// template is immutable, so the StatefulSet must be replaced.
func outdated(set *appsv1.StatefulSet, size resource.Quantity) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		if request := requested(&set.Spec.VolumeClaimTemplates[i]); request.Cmp(size) < 0 {
			return true
		}
	}
	return false
}

// deleteUnbound deletes the claims of the cache. It deletes the pods that use a claim first: if the
// call is interrupted, the claim still exists and the next call finds it.
func deleteUnbound(ctx context.Context, shoot client.Client, upstream string, claims []*corev1.PersistentVolumeClaim) error {
	if len(claims) == 0 {
		return nil
	}
	pods, err := podsOf(ctx, shoot, upstream)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		for i := range pods {
			if uses(&pods[i], claim.Name) {
				if err := deleteExactly(ctx, shoot, &pods[i]); err != nil {
					return fmt.Errorf("deleting pending pod %s in the shoot: %w", pods[i].Name, err)
				}
			}
		}
		if err := deleteExactly(ctx, shoot, claim); err != nil {
			return fmt.Errorf("deleting unbound claim %s in the shoot: %w", claim.Name, err)
		}
	}
	return nil
}

// RemoveOrphans deletes the pods and claims of a cache whose StatefulSet is missing, because a
// reconciliation was interrupted after Grow. Nothing else deletes them when the cache is removed:
// gardener-resource-manager finds claims by a StatefulSet, and the garbage collector finds pods by
// their owner. If the StatefulSet exists, RemoveOrphans deletes nothing. Call it only when nodes no
// longer use the cache, because the pods serve until they are deleted.
func RemoveOrphans(ctx context.Context, shoot client.Client, upstream string) error {
	set, err := setOf(ctx, shoot, upstream)
	if err != nil || set != nil && set.DeletionTimestamp == nil {
		return err
	}
	pods, err := podsOf(ctx, shoot, upstream)
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		if owner := metav1.GetControllerOf(pod); owner != nil && (set == nil || owner.UID != set.UID) {
			continue
		}
		if err := deleteExactly(ctx, shoot, pod); err != nil {
			return fmt.Errorf("deleting pod %s of a removed cache in the shoot: %w", pod.Name, err)
		}
	}
	claims, err := claimsOf(ctx, shoot, upstream)
	if err != nil {
		return err
	}
	for i := range claims {
		if err := deleteExactly(ctx, shoot, &claims[i]); err != nil {
			return fmt.Errorf("deleting claim %s of a removed cache in the shoot: %w", claims[i].Name, err)
		}
	}
	return nil
}

func podsOf(ctx context.Context, shoot client.Reader, upstream string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{v1alpha3.LabelUpstreamHost: v1alpha3.HostLabel(upstream)}); err != nil {
		return nil, fmt.Errorf("listing the pods of the cache of %s in the shoot: %w", upstream, err)
	}
	return pods.Items, nil
}

func uses(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// deleteExactly deletes this object, but not a new one of the same name.
func deleteExactly(ctx context.Context, shoot client.Client, object client.Object) error {
	uid := object.GetUID()
	return client.IgnoreNotFound(shoot.Delete(ctx, object, client.Preconditions{UID: &uid}))
}
