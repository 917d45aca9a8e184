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

// claimsOf returns the claims of all replicas of the cache, without those that are being deleted:
// they belong to a previous cache that was removed. The StatefulSet controller gives claims the
// labels of the pods.
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
