package volume

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// GoneWithin is how long a StatefulSet may take to go without its pods: the garbage collector of the shoot releases
	// them, one request each.
	GoneWithin = 15 * time.Second
	interval   = 500 * time.Millisecond
)

// Growth is what came of growing the volumes of one cache.
type Growth struct {
	// Grown says that a claim was too small: it was asked to grow, or deleted to be made anew.
	Grown bool
	// Replaced says that the cache has no StatefulSet now. Its pods run on, and the next StatefulSet of the name adopts them.
	Replaced bool
	// Refused says why the volumes keep their size. The StatefulSet is as it was then, and so are the claims, but those that
	// had grown already when the shoot's API server refused the next one.
	Refused *Refusal
}

// Refusal names a claim that cannot grow.
type Refusal struct {
	Claim string
	// StorageClass is the one that does not allow volumes to grow, if Reason is empty.
	StorageClass string
	// Reason is what the shoot's API server says, such as that a quota is exceeded.
	Reason string
	// Size is the one that the volumes keep.
	Size resource.Quantity
}

// Grow makes the volumes of the cache at least as big as it asks for: first the claims, which the storage provider expands
// while the cache serves, then the StatefulSet goes without its pods, so that one with the new size can come. A claim that
// is not bound cannot grow, and holds nothing: it is deleted with the pod that waits for it, and the next StatefulSet makes
// both anew. Every step is repeatable, and it is right to call it again after an interruption. A cache without claims needs
// nothing.
func Grow(ctx context.Context, shoot client.Client, c *v1alpha3.RegistryCache) (Growth, error) {
	size := *c.Volume.Size
	claims, err := claimsOf(ctx, shoot, c.Upstream)
	if err != nil {
		return Growth{}, err
	}
	set, err := setOf(ctx, shoot, c.Upstream)
	if err != nil {
		return Growth{}, err
	}
	bound, unbound := claimsBelow(claims, size)
	refusal, err := refusalOf(ctx, shoot, bound)
	if err == nil && refusal == nil {
		refusal, err = expand(ctx, shoot, bound, size)
	}
	if err != nil || refusal != nil {
		return Growth{Refused: refusal}, err
	}
	growth := Growth{Grown: len(bound)+len(unbound) > 0, Replaced: set == nil && len(claims) > 0}
	if set != nil && outdated(set, size) {
		if err := release(ctx, shoot, set); err != nil {
			return Growth{}, err
		}
		growth.Replaced = true
	}
	return growth, abandon(ctx, shoot, c.Upstream, unbound)
}

// expand lets the claims ask for the size.
func expand(ctx context.Context, shoot client.Client, claims []*corev1.PersistentVolumeClaim, size resource.Quantity) (*Refusal, error) {
	for _, claim := range claims {
		old := requested(claim)
		before := client.MergeFrom(claim.DeepCopy())
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = size
		err := shoot.Patch(ctx, claim, before)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return &Refusal{Claim: claim.Namespace + "/" + claim.Name, Reason: err.Error(), Size: old}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("growing claim %s in the shoot to %s: %w", claim.Name, size.String(), err)
		}
	}
	return nil, nil //nolint:nilnil // none is an answer
}

// AwaitReplaced returns nil once the cache has a StatefulSet of the size, and an error when it has not after the time.
// gardener-resource-manager may have brought back the one of before in the moment between its end and the write of the
// new size; calling Grow again mends that.
func AwaitReplaced(ctx context.Context, shoot client.Reader, c *v1alpha3.RegistryCache, within time.Duration) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, interval, within, true, func(context.Context) (bool, error) {
		set, err := setOf(ctx, shoot, c.Upstream)
		switch {
		case err != nil:
			missing = err
		case set == nil || set.DeletionTimestamp != nil:
			missing = fmt.Errorf("the StatefulSet of the cache of %s is not back yet", c.Upstream)
		case outdated(set, *c.Volume.Size):
			return false, fmt.Errorf("the StatefulSet of the cache of %s came back with its old size; it is replaced again", c.Upstream)
		default:
			return true, nil
		}
		return false, nil
	})
	if wait.Interrupted(err) && missing != nil {
		return fmt.Errorf("%w within %s", missing, within)
	}
	return err
}

// claimsBelow returns the claims that ask for less than the size.
func claimsBelow(claims []corev1.PersistentVolumeClaim, size resource.Quantity) (bound, unbound []*corev1.PersistentVolumeClaim) {
	for i := range claims {
		claim := &claims[i]
		request := requested(claim)
		switch {
		case request.Cmp(size) >= 0:
		case claim.Status.Phase == corev1.ClaimBound:
			bound = append(bound, claim)
		default:
			unbound = append(unbound, claim)
		}
	}
	return bound, unbound
}

// refusalOf looks at all claims before any is changed, so that the instances of a cache keep volumes of one size.
func refusalOf(ctx context.Context, shoot client.Reader, claims []*corev1.PersistentVolumeClaim) (*Refusal, error) {
	for _, claim := range claims {
		class := &storagev1.StorageClass{}
		name := ptr.Deref(claim.Spec.StorageClassName, "")
		if name != "" {
			if err := shoot.Get(ctx, client.ObjectKey{Name: name}, class); client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("reading StorageClass %s of claim %s in the shoot: %w", name, claim.Name, err)
			}
		}
		if !ptr.Deref(class.AllowVolumeExpansion, false) {
			return &Refusal{Claim: claim.Namespace + "/" + claim.Name, StorageClass: name, Size: requested(claim)}, nil
		}
	}
	return nil, nil //nolint:nilnil // none is an answer
}

// release deletes the StatefulSet, leaves its pods alone, and waits until it is gone: what is applied to one that is on its
// way out goes with it.
func release(ctx context.Context, shoot client.Client, set *appsv1.StatefulSet) error {
	err := shoot.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &set.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting StatefulSet %s in the shoot, but not its pods: %w", set.Name, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, interval, GoneWithin, true, func(context.Context) (bool, error) {
		now := &appsv1.StatefulSet{}
		last = shoot.Get(ctx, client.ObjectKeyFromObject(set), now)
		// One of another UID is the one of before, brought back; the next call looks at it.
		return client.IgnoreNotFound(last) == nil && (last != nil || now.UID != set.UID), nil
	})
	if err != nil {
		return fmt.Errorf("StatefulSet %s in the shoot did not go within %s: %w", set.Name, GoneWithin, err)
	}
	return nil
}
