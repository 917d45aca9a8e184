package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/controllerutils"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/retry"
	"github.com/gardener-extensions/registry-cache/controller/volume"
)

// adaptVolumes grows volumes that are smaller than configured, deletes those of removed replicas
// and caches, and resets caches whose volumes are bound to nodes that no longer exist. If the shoot
// refuses a growth or deletion, that is not an error: the condition CachesHealthy reports it
// (package health).
func (a *Actuator) adaptVolumes(ctx context.Context, log logr.Logger, t *target) error {
	claims, others, err := volume.Claims(ctx, t.shoot, t.config.Caches, t.identities)
	if err != nil {
		return err
	}
	if err := a.removeLeftovers(ctx, log, t, slices.Clone(claims), others); err != nil {
		return err
	}
	for _, claim := range claims {
		log := log.WithValues("upstream", claim.Cache.Upstream, "persistentVolumeClaim", claim.Name)
		switch {
		case claim.DeletionTimestamp != nil: // perhaps of an earlier cache of the upstream
		case claim.Surplus():
			if err := unlessRefused(log, claim.Delete(ctx, t.shoot), "delete the claim of a removed replica"); err != nil {
				return err
			}
		case claim.TooSmall() && claim.Bound():
			err := claim.Grow(ctx, t.shoot)
			if volume.Refused(err) {
				log.Info("The volume of a cache keeps its size", "reason", err.Error())
				a.tell(t.ex, corev1.EventTypeWarning, "VolumeNotGrown", "cache of %s: %s", claim.Cache.Upstream, err)
				continue
			}
			if err != nil {
				return err
			}
			log.Info("Growing the volume of a cache", "size", claim.Cache.Volume.Size)
			a.tell(t.ex, corev1.EventTypeNormal, "VolumeGrowing", "cache of %s: claim %s grows to %s", claim.Cache.Upstream, claim.Name, claim.Cache.Volume.Size)
			volumesGrown.Inc()
		}
	}
	stranded, err := volume.ReplaceStranded(ctx, t.shoot, claims)
	for _, claim := range stranded {
		log.Info("Deleted the claim of a cache, because its volume is bound to nodes that no longer exist; the cache starts empty",
			"upstream", claim.Cache.Upstream, "persistentVolumeClaim", claim.Name, "persistentVolume", claim.Spec.VolumeName)
		a.tell(t.ex, corev1.EventTypeWarning, "VolumeReplaced", "cache of %s: claim %s was deleted, because its volume is bound to nodes that "+
			"no longer exist; the cache starts empty", claim.Cache.Upstream, claim.Name)
		volumesStranded.Inc()
	}
	return unlessRefused(log, err, "replace volumes")
}

// removeLeftovers deletes what is left in the shoot of unwanted caches and replicas, and removes
// those that are gone from the target's leaving caches. gardener-resource-manager deletes only
// objects in the status of its ManagedResource: not those of the previous seed, nor of a partial
// application. others are the claims of caches that are not configured. They show what is left, so
// they are deleted last.
func (a *Actuator) removeLeftovers(ctx context.Context, log logr.Logger, t *target, claims []volume.Claim, others []corev1.PersistentVolumeClaim) error {
	isRestored := t.before.status == nil // in the previous seed, high availability may have been interrupted
	for i, c := range t.config.Caches {
		isSurplus := func(claim volume.Claim) bool { return claim.Cache.Upstream == c.Upstream && claim.Surplus() }
		if cache.Replicas(c) == 1 && (isRestored || slices.ContainsFunc(claims, isSurplus)) {
			if err := endAvailability(ctx, log, t.shoot, t.identities[i]); err != nil {
				return err
			}
		}
	}
	left := labelsOf(others)
	for _, id := range t.leaving {
		left[id.Name] = client.MatchingLabels{v1alpha3.LabelApp: id.Name, v1alpha3.LabelUpstreamHost: id.HostLabel}
	}
	for _, labels := range left {
		if err := deleteCache(ctx, log, t.shoot, labels); err != nil {
			return err
		}
	}
	remaining := labelsOf(others)
	t.leaving = slices.DeleteFunc(t.leaving, func(id v1alpha3.Identity) bool { return remaining[id.Name] == nil })
	return nil
}

// labelsOf returns the labels of the caches with these claims, by the names of the caches.
func labelsOf(claims []corev1.PersistentVolumeClaim) map[string]client.MatchingLabels {
	found := map[string]client.MatchingLabels{}
	for _, claim := range claims {
		name := claim.Labels[v1alpha3.LabelApp]
		ordinal, isOurs := strings.CutPrefix(claim.Name, cache.ClaimPrefix+name+"-")
		if _, odd := strconv.Atoi(ordinal); isOurs && odd == nil {
			found[name] = client.MatchingLabels{v1alpha3.LabelApp: name, v1alpha3.LabelUpstreamHost: claim.Labels[v1alpha3.LabelUpstreamHost]}
		}
	}
	return found
}

// endAvailability removes the objects that only a highly available cache needs. With the label on
// its StatefulSet, the webhook of gardener-resource-manager would still set two replicas.
func endAvailability(ctx context.Context, log logr.Logger, shoot client.Client, id v1alpha3.Identity) error {
	set := &appsv1.StatefulSet{}
	err := client.IgnoreNotFound(shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: id.Name}, set))
	if set.Labels[resourcesv1alpha1.HighAvailabilityConfigType] != "" {
		single := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}},"spec":{"replicas":1}}`, resourcesv1alpha1.HighAvailabilityConfigType)
		err = shoot.Patch(ctx, set, client.RawPatch(types.MergePatchType, single))
	}
	if err == nil || volume.Refused(err) {
		err = errors.Join(err, deleteAll(ctx, shoot, nil, cache.AvailabilityObjects(id)...))
	}
	return unlessRefused(log, err, "remove the second replica of cache "+id.Name)
}

// deleteCache deletes all objects with the labels of a cache. The claims show what is left, so they
// are the last.
func deleteCache(ctx context.Context, log logr.Logger, shoot client.Client, labels client.MatchingLabels) error {
	name := labels[v1alpha3.LabelApp]
	log.Info("Deleting what is left of a removed cache", "name", name)
	objects := append(cache.AvailabilityObjects(v1alpha3.Identity{Name: name}),
		&corev1.Service{}, &networkingv1.NetworkPolicy{}, &vpaautoscalingv1.VerticalPodAutoscaler{}, &appsv1.StatefulSet{})
	err := deleteAll(ctx, shoot, labels, objects...)
	if err == nil {
		err = deleteAll(ctx, shoot, labels, &corev1.PersistentVolumeClaim{})
	}
	return unlessRefused(log, err, "delete what is left of cache "+name)
}

// deleteAll deletes the objects, and for those without a name all of their kind with the labels. It
// continues after a deletion that the shoot refuses, but not after another error, and returns these
// errors. It ignores kinds that the shoot does not know.
func deleteAll(ctx context.Context, shoot client.Client, labels client.MatchingLabels, objects ...client.Object) (refused error) {
	for _, object := range objects {
		var err error
		if object.GetName() != "" {
			err = shoot.Delete(ctx, object)
		} else {
			err = shoot.DeleteAllOf(ctx, object, client.InNamespace(metav1.NamespaceSystem), labels)
		}
		if err = client.IgnoreNotFound(err); err != nil && !volume.Refused(err) {
			return err
		}
		refused = errors.Join(refused, err)
	}
	return refused
}

// unlessRefused adds what was done to the error, or returns nil if only the owner of the shoot can
// fix it: one cache must not fail the others.
func unlessRefused(log logr.Logger, err error, what string) error {
	if volume.Refused(err) {
		log.Info("The shoot refuses a deletion", "reason", err.Error())
	} else if err != nil {
		return fmt.Errorf("%s in the shoot: %w", what, err)
	}
	return nil
}

// entrust lets gardener-resource-manager delete the caches of a hibernated shoot when it wakes up.
// It deletes only what the status of a ManagedResource lists, and only if it has set its
// finalizer. After a migration in hibernation, it has seen no ManagedResource yet.
func (a *Actuator) entrust(ctx context.Context, namespace string, before record) error {
	if len(before.running) == 0 {
		return nil
	}
	mr, err := a.managedResource(ctx, namespace, cachesName)
	if apierrors.IsNotFound(err) { // the restoration found a mistake
		if err = applyToShoot(ctx, a.client, namespace, cachesName, nil); err == nil {
			mr, err = a.managedResource(ctx, namespace, cachesName)
		}
	}
	if err != nil || mr.DeletionTimestamp != nil {
		return err
	}
	listed := mr.DeepCopy()
	for _, id := range before.running {
		for _, object := range cache.References(id, before.deployed(id.Upstream)) {
			listed.Status.Resources = append(listed.Status.Resources, resourcesv1alpha1.ObjectReference{ObjectReference: object})
		}
	}
	if before.takenOverAt != "" {
		policy := corev1.ObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: originalPolicy.Namespace, Name: originalPolicy.Name}
		listed.Status.Resources = append(listed.Status.Resources, resourcesv1alpha1.ObjectReference{ObjectReference: policy})
	}
	if err := a.client.Status().Patch(ctx, listed, client.MergeFrom(mr)); err != nil {
		return fmt.Errorf("list the running caches in the status of ManagedResource %s: %w", cachesName, err)
	}
	if err := controllerutils.AddFinalizers(ctx, a.client, listed, resourcemanagerpredicate.FinalizerName); err != nil {
		return fmt.Errorf("leave ManagedResource %s to gardener-resource-manager: %w", cachesName, err)
	}
	return nil
}

// awaitNoVolumes deletes what is left of all caches, and waits until their disks are gone: a
// deleted shoot next loses the controllers that delete disks, and a leftover disk costs money
// forever. It stops waiting a limited time after the deletion was requested.
func (a *Actuator) awaitNoVolumes(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.await(ctx, func() error {
		remaining, err := a.removeVolumes(ctx, log, ex)
		if err != nil && a.isOver(ex.DeletionTimestamp) {
			log.Info("Not waiting any longer for the volumes of caches", "reason", err.Error()) // perhaps its API server never ran
			return nil
		}
		if err != nil || len(remaining) == 0 {
			return err
		}
		return retry.Waiting(fmt.Errorf("volumes of caches are still being deleted in the shoot: %s", strings.Join(remaining, ", ")))
	})
}

// isOver reports whether a wait since that time has reached its limit.
func (a *Actuator) isOver(since *metav1.Time) bool {
	return since != nil && a.clock.Since(since.Time) >= volumesLimit
}

// removeVolumes requests the deletion of all caches of the shoot. It returns the claims and volumes
// that are worth waiting for.
func (a *Actuator) removeVolumes(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) (remaining []string, err error) {
	shoot, err := a.shootClient(ctx, ex.Namespace)
	if err != nil {
		return nil, err
	}
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if err := shoot.List(ctx, claims, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, fmt.Errorf("list the claims of the caches in the shoot: %w", err)
	}
	if err := shoot.List(ctx, volumes); err != nil {
		return nil, fmt.Errorf("list the volumes in the shoot: %w", err)
	}
	isLeaving := func(c corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil }
	for _, labels := range labelsOf(slices.DeleteFunc(slices.Clone(claims.Items), isLeaving)) {
		if err := deleteCache(ctx, log, shoot, labels); err != nil {
			return nil, err
		}
	}
	await := func(what string, since *metav1.Time) {
		if a.isOver(since) {
			log.Info("Not waiting any longer for a volume of a cache: check that its disk is deleted", "name", what)
		} else {
			remaining = append(remaining, what)
		}
	}
	for _, claim := range claims.Items {
		await("PersistentVolumeClaim "+claim.Name, cmp.Or(claim.DeletionTimestamp, ex.DeletionTimestamp)) // a policy may refuse the deletion
	}
	for _, v := range volumes.Items {
		of := v.Spec.ClaimRef
		isOurs := of != nil && of.Namespace == metav1.NamespaceSystem && strings.HasPrefix(of.Name, cache.ClaimPrefix)
		isOurs = isOurs && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !volume.IsLocal(&v)
		switch {
		case isOurs && v.Status.Phase == corev1.VolumeReleased:
			await("PersistentVolume "+v.Name, cmp.Or(v.Status.LastPhaseTransitionTime, &v.CreationTimestamp))
		case isOurs: // its claim is gone since just now, if at all
			await("PersistentVolume "+v.Name, ex.DeletionTimestamp)
		}
	}
	return remaining, nil
}
