package volume

import (
	"context"
	"errors"
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
	// GoneWithin limits the wait for the deletion of a StatefulSet without its pods: the shoot's
	// garbage collector orphans the pods one by one.
	GoneWithin = 15 * time.Second
	interval   = 500 * time.Millisecond
)

// Growth is the result of growing the volumes of one cache.
type Growth struct {
	// Grown is true if a claim was too small. Grow expanded it, or deleted it to be recreated.
	Grown bool
	// Replaced is true if there are claims but no StatefulSet: Grow deleted it, now or earlier,
	// without its pods. The next StatefulSet of the same name adopts them.
	Replaced bool
	// Refused is the reason why the volumes keep their size, or nil. If it is set, the StatefulSet is
	// unchanged. Grow may have expanded some claims before the shoot's API server refused the next
	// one.
	Refused *Refusal
}

// Refusal describes a claim that cannot grow.
type Refusal struct {
	Claim string
	// StorageClass is the class that does not allow expansion. It is the cause if Reason is empty.
	StorageClass string
	// Reason is the error of the shoot's API server, such as an exceeded quota.
	Reason string
	// Size is the size that the volumes keep.
	Size resource.Quantity
}

// Grow makes the volumes of the cache at least as big as configured. First it expands the claims;
// the storage provider grows the volumes while the cache serves. Then it deletes the StatefulSet
// but not its pods, so that a StatefulSet with the new size can be created. A claim that is not
// bound cannot grow and has no data. Grow deletes it together with its pending pod, and the next
// StatefulSet recreates both. Every step can be repeated after an interruption. For a cache without
// claims, Grow does nothing.
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
	return growth, deleteUnbound(ctx, shoot, c.Upstream, unbound)
}

// expand requests the size for each claim.
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
	return nil, nil //nolint:nilnil // nil means not refused
}

// AwaitReplaced waits until the cache has a StatefulSet with the new size, or returns an error
// after the given time. After Grow, gardener-resource-manager may have recreated the StatefulSet
// with the old size. Calling Grow again fixes that.
func AwaitReplaced(ctx context.Context, shoot client.Reader, c *v1alpha3.RegistryCache, within time.Duration) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, within, true, func(context.Context) (bool, error) {
		set, err := setOf(ctx, shoot, c.Upstream)
		switch {
		case err != nil:
			last = err
		case set == nil || set.DeletionTimestamp != nil:
			last = fmt.Errorf("the StatefulSet of the cache of %s has not been recreated", c.Upstream)
		case outdated(set, *c.Volume.Size):
			return false, fmt.Errorf("the StatefulSet of the cache of %s was recreated with its old size and will be replaced again", c.Upstream)
		default:
			return true, nil
		}
		return false, nil
	})
	if wait.Interrupted(err) && last != nil {
		return fmt.Errorf("%w after %s", last, within)
	}
	return err
}

// claimsBelow returns the claims that request less than the size.
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

// refusalOf checks all claims before any is changed, so that all replicas keep volumes of the same
// size.
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
	return nil, nil //nolint:nilnil // nil means not refused
}

// release deletes the StatefulSet without its pods and waits until it is gone: changes to a
// StatefulSet that is being deleted are lost.
func release(ctx context.Context, shoot client.Client, set *appsv1.StatefulSet) error {
	err := shoot.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &set.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting StatefulSet %s in the shoot without its pods: %w", set.Name, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, interval, GoneWithin, true, func(context.Context) (bool, error) {
		now := &appsv1.StatefulSet{}
		last = shoot.Get(ctx, client.ObjectKeyFromObject(set), now)
		// Another UID means that the StatefulSet was recreated. The next call handles that.
		return client.IgnoreNotFound(last) == nil && (last != nil || now.UID != set.UID), nil
	})
	if err != nil {
		return fmt.Errorf("StatefulSet %s in the shoot still exists after %s: %w", set.Name, GoneWithin, errors.Join(last, err))
	}
	return nil
}
