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
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/volume"
)

// removeLeftovers deletes what is left of removed caches and replicas in the shoot. It removes the
// caches that are gone from t.leaving. gardener-resource-manager deletes only objects in the status
// of its ManagedResource. Objects of the previous seed, or of a partial application, are not there.
// others are the claims of caches that are not configured. They show what is left, so they are
// deleted last.
func (a *Actuator) removeLeftovers(ctx context.Context, log logr.Logger, t *target, claims []volume.Claim, others []corev1.PersistentVolumeClaim) error {
	isRestored := t.before.status == nil // the previous seed may have left objects for high availability
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

// endAvailability removes the objects that only a highly available cache needs, and the label of
// the StatefulSet, with which the webhook of gardener-resource-manager sets two replicas.
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
// are deleted last.
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

// deleteAll deletes the objects. An object without a name stands for all objects of its kind with
// the labels. deleteAll continues after the shoot refuses a deletion, but not after another error,
// and returns all errors. It ignores kinds that the shoot does not know.
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

// removeCaches requests the deletion of all caches of the shoot. It returns the remaining claims
// and volumes that are worth waiting for.
func (a *Actuator) removeCaches(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) (remaining []string, err error) {
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
		case isOurs: // its claim still exists, or has just been deleted
			await("PersistentVolume "+v.Name, ex.DeletionTimestamp)
		}
	}
	return remaining, nil
}
