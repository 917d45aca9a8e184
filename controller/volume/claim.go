// Package volume manages the claims of caches where Kubernetes does not: it grows them, because
// claim templates are immutable; it deletes those of removed replicas; and it replaces volumes on
// the disks of deleted nodes, which would remain bound. In the shoot it changes only claims with
// the labels of a cache, and their pods.
//
// The caller deploys the StatefulSets.
package volume

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// Claim is the claim of one replica of a cache. The cache has defaults.
type Claim struct {
	*corev1.PersistentVolumeClaim
	Cache *v1alpha3.RegistryCache
}

// Claims returns the claims of the caches, including those that are being deleted, and the claims
// of other caches, in one request to the shoot. The StatefulSet controller gives claims the labels
// of the pods.
func Claims(
	ctx context.Context, shoot client.Reader, caches []v1alpha3.RegistryCache, identities v1alpha3.Identities,
) (claims []Claim, others []corev1.PersistentVolumeClaim, err error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := shoot.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, nil, fmt.Errorf("list the claims of the caches in the shoot: %w", err)
	}
	for i := range list.Items {
		claim := &list.Items[i]
		upstream := identities.Owner(claim.Labels)
		of := slices.IndexFunc(caches, func(c v1alpha3.RegistryCache) bool { return c.Upstream == upstream })
		if of >= 0 {
			claims = append(claims, Claim{claim, &caches[of]})
		} else {
			others = append(others, *claim)
		}
	}
	return claims, others, nil
}

// Requested returns the size that the claim requests. The size of the volume may differ from it.
func (c Claim) Requested() resource.Quantity {
	return c.Spec.Resources.Requests[corev1.ResourceStorage]
}

// TooSmall reports whether the claim requests less than the configured size.
func (c Claim) TooSmall() bool {
	request := c.Requested()
	return request.Cmp(*c.Cache.Volume.Size) < 0
}

// Bound reports whether the claim has a volume. The shoot's API server grows only such a claim.
func (c Claim) Bound() bool { return c.Status.Phase == corev1.ClaimBound }

// Surplus reports whether the cache has fewer replicas than the claim's ordinal needs. The number
// of replicas is the configured one: a cache that is scaled to zero keeps its content.
func (c Claim) Surplus() bool {
	ordinal, err := strconv.Atoi(strings.TrimPrefix(c.Name, cache.ClaimPrefix+c.Labels[v1alpha3.LabelApp]+"-"))
	return err == nil && ordinal >= int(cache.Replicas(*c.Cache))
}

// Grow requests the configured size. The storage provider grows the volume while the cache serves.
// If the error satisfies Refused, this claim cannot grow. The StatefulSet does not change: its
// claim templates are immutable, so a claim that it creates later is too small until the next Grow.
func (c Claim) Grow(ctx context.Context, shoot client.Writer, options ...client.PatchOption) error {
	grown := c.DeepCopy()
	grown.Spec.Resources.Requests[corev1.ResourceStorage] = *c.Cache.Volume.Size
	if err := shoot.Patch(ctx, grown, client.MergeFrom(c.PersistentVolumeClaim), options...); err != nil {
		return fmt.Errorf("grow claim %s in the shoot to %s: %w", c.Name, c.Cache.Volume.Size.String(), err)
	}
	return nil
}

// Refused reports whether the shoot's API server rejected a growth or a deletion, because of the
// StorageClass, a quota or another admission plugin. Someone must fix the cause. If a webhook gives
// no code, the status is 400; if it does not run, 500.
func Refused(err error) bool {
	failed := apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || failed
}

// Delete deletes the claim. Kubernetes keeps it until no pod uses it (pvc-protection).
func (c Claim) Delete(ctx context.Context, shoot client.Writer, options ...client.DeleteOption) error {
	if err := deleteExactly(ctx, shoot, c.PersistentVolumeClaim, options...); err != nil {
		return fmt.Errorf("delete claim %s of a removed replica in the shoot: %w", c.Name, err)
	}
	return nil
}

// deleteExactly deletes this object, but not a new one with the same name.
func deleteExactly(ctx context.Context, shoot client.Writer, object client.Object, options ...client.DeleteOption) error {
	return client.IgnoreNotFound(shoot.Delete(ctx, object, append(options, client.Preconditions{UID: new(object.GetUID())})...))
}
