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

// removeLeftovers deletes what is left in the shoot of caches and replicas that nobody wants, and
// takes those that are gone from the target's leaving caches. gardener-resource-manager deletes
// only what it has listed in the status of its ManagedResource: not what the previous seed has
// deployed, nor what it could apply only in part. The argument others are the claims of caches
// that are not configured. They tell what is left, so they are deleted last.
func (a *Actuator) removeLeftovers(ctx context.Context, log logr.Logger, t *target, claims []volume.Claim, others []corev1.PersistentVolumeClaim) error {
	surplus := slices.DeleteFunc(claims, func(c volume.Claim) bool { return !c.Surplus() })
	if len(surplus) == 0 && len(others) == 0 && len(t.leaving) == 0 {
		return nil
	}
	mr, err := a.managedResource(ctx, t.ex.Namespace, cachesName)
	if err != nil {
		return err
	}
	for _, claim := range surplus {
		if id, _ := t.identities.Of(claim.Cache.Upstream); !lists(mr, "PodDisruptionBudget", id.Name) {
			if err := endAvailability(ctx, log, t.shoot, id); err != nil {
				return err
			}
		}
	}
	left := labelsOf(others)
	for name, labels := range left {
		if !lists(mr, "StatefulSet", name) {
			if err := deleteCache(ctx, log, t.shoot, labels); err != nil {
				return err
			}
		}
	}
	t.leaving = slices.DeleteFunc(t.leaving, func(id v1alpha3.Identity) bool {
		return left[id.Name] == nil && !lists(mr, "StatefulSet", id.Name)
	})
	return nil
}

// removeServices deletes those of the Services that nobody wants. A Service of a removed cache goes
// with its claims; this is about one whose cache was renamed.
func (a *Actuator) removeServices(ctx context.Context, shoot client.Client, t *target, services []corev1.Service) error {
	odd := slices.DeleteFunc(slices.Clone(services), func(s corev1.Service) bool {
		id := slices.IndexFunc(t.identities, func(id v1alpha3.Identity) bool { return id.Name == s.Labels[v1alpha3.LabelApp] })
		return id < 0 || s.Annotations[v1alpha3.AnnotationUpstream] == "" || t.identities[id].ServiceName(&t.config.Caches[id]) == s.Name ||
			slices.ContainsFunc(t.identities[id].Previous, func(p v1alpha3.PreviousService) bool { return p.Name == s.Name })
	})
	if len(odd) == 0 {
		return nil
	}
	mr, err := a.managedResource(ctx, t.ex.Namespace, servicesName)
	if err != nil {
		return err
	}
	for _, service := range odd {
		if !lists(mr, "Service", service.Name) {
			err = errors.Join(err, client.IgnoreNotFound(shoot.Delete(ctx, &service)))
		}
	}
	return unlessRefused(logr.FromContextOrDiscard(ctx), err, "deleting the Services of renamed caches")
}

// lists returns whether gardener-resource-manager deletes the object when it is no longer in the
// ManagedResource.
func lists(mr *resourcesv1alpha1.ManagedResource, kind, name string) bool {
	return slices.ContainsFunc(mr.Status.Resources, func(r resourcesv1alpha1.ObjectReference) bool { return r.Kind == kind && r.Name == name })
}

// labelsOf returns the labels of the caches that have the claims, by the names of the caches.
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

// endAvailability removes what only a highly available cache has. With the label on its
// StatefulSet, the webhook of gardener-resource-manager would go on to set two replicas.
func endAvailability(ctx context.Context, log logr.Logger, shoot client.Client, id v1alpha3.Identity) error {
	set := &appsv1.StatefulSet{}
	err := client.IgnoreNotFound(shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: id.Name}, set))
	single := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}},"spec":{"replicas":1}}`, resourcesv1alpha1.HighAvailabilityConfigType)
	if set.Labels[resourcesv1alpha1.HighAvailabilityConfigType] != "" {
		err = shoot.Patch(ctx, set, client.RawPatch(types.MergePatchType, single))
	}
	for _, object := range cache.AvailabilityObjects(id) {
		err = errors.Join(err, client.IgnoreNotFound(shoot.Delete(ctx, object)))
	}
	return unlessRefused(log, err, "removing the second replica of cache "+id.Name)
}

// deleteCache deletes all objects with the labels of a cache.
func deleteCache(ctx context.Context, log logr.Logger, shoot client.Client, labels client.MatchingLabels) error {
	name := labels[v1alpha3.LabelApp]
	log.Info("Deleting what is left of a removed cache", "name", name)
	var err error
	for _, object := range cache.AvailabilityObjects(v1alpha3.Identity{Name: name}) {
		err = errors.Join(err, client.IgnoreNotFound(shoot.Delete(ctx, object)))
	}
	all := func(kind client.Object) error { // NotFound: the shoot does not know the kind
		return client.IgnoreNotFound(shoot.DeleteAllOf(ctx, kind, client.InNamespace(metav1.NamespaceSystem), labels))
	}
	err = errors.Join(err, all(&corev1.Service{}), all(&networkingv1.NetworkPolicy{}), all(&vpaautoscalingv1.VerticalPodAutoscaler{}), all(&appsv1.StatefulSet{}))
	if err == nil { // the claims tell what is left
		err = all(&corev1.PersistentVolumeClaim{})
	}
	return unlessRefused(log, err, "deleting what is left of cache "+name)
}

// unlessRefused returns an error with what was done, or nil for one that only the owner of the
// shoot can do something about: one cache must not fail the others.
func unlessRefused(log logr.Logger, err error, what string) error {
	if err == nil {
		return nil
	}
	if volume.Refused(err) {
		log.Info("The shoot refuses a deletion", "reason", err.Error())
		return nil
	}
	return fmt.Errorf("%s in the shoot: %w", what, err)
}

// entrust lets gardener-resource-manager delete the caches of a hibernated shoot when it wakes up.
// It deletes only what the status of a ManagedResource lists, and only if it has set its
// finalizer. After a migration in hibernation, it has seen no ManagedResource yet.
func (a *Actuator) entrust(ctx context.Context, namespace string, before record) error {
	if len(before.running) == 0 {
		return nil
	}
	mr, err := a.managedResource(ctx, namespace, cachesName)
	if apierrors.IsNotFound(err) { // the restoration has found a mistake
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
			if !lists(mr, object.Kind, object.Name) {
				listed.Status.Resources = append(listed.Status.Resources, resourcesv1alpha1.ObjectReference{ObjectReference: object})
			}
		}
	}
	if err := a.client.Status().Patch(ctx, listed, client.MergeFrom(mr)); err != nil {
		return fmt.Errorf("listing the running caches in the status of ManagedResource %s: %w", cachesName, err)
	}
	if err := controllerutils.AddFinalizers(ctx, a.client, listed, resourcemanagerpredicate.FinalizerName); err != nil {
		return fmt.Errorf("leaving ManagedResource %s to gardener-resource-manager: %w", cachesName, err)
	}
	return nil
}

// awaitNoVolumes deletes what is left of all caches, and waits until their disks are gone: when the
// shoot is deleted, what deletes disks goes next, and a disk that is left costs money for ever. It
// does not wait longer than the limit since the deletion was requested.
func (a *Actuator) awaitNoVolumes(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	var late []string
	err := a.await(ctx, func() error {
		remaining, err := a.volumes(ctx, log, ex)
		if err != nil && a.isOver(ex.DeletionTimestamp) {
			log.Info("Not waiting any longer for the volumes of caches", "reason", err.Error()) // perhaps its API server never ran
			return nil
		}
		if err != nil {
			return err
		}
		var waitFor []string
		late = nil
		for name, since := range remaining {
			if a.isOver(since) {
				late = append(late, name)
			} else {
				waitFor = append(waitFor, name)
			}
		}
		if len(waitFor) == 0 {
			return nil
		}
		slices.Sort(waitFor)
		return retry.Waiting(fmt.Errorf("volumes of caches are still being deleted in the shoot: %s", strings.Join(waitFor, ", ")))
	})
	if len(late) > 0 {
		log.Info("Not waiting any longer for volumes of caches: check that their disks are deleted", "volumes", late)
	}
	return err
}

// isOver returns whether it is too late to wait for what has begun then.
func (a *Actuator) isOver(since *metav1.Time) bool {
	return since != nil && a.clock.Since(since.Time) >= a.waits.volumes
}

// volumes requests the deletion of all caches of the shoot. It returns their claims and volumes,
// and since when they are being deleted.
func (a *Actuator) volumes(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) (map[string]*metav1.Time, error) {
	shoot, err := a.shootClient(ctx, ex.Namespace)
	if err != nil {
		return nil, err
	}
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if err := shoot.List(ctx, claims, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, fmt.Errorf("listing the claims of the caches in the shoot: %w", err)
	}
	if err := shoot.List(ctx, volumes); err != nil {
		return nil, fmt.Errorf("listing the volumes in the shoot: %w", err)
	}
	found := map[string]*metav1.Time{}
	isLeaving := func(c corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil }
	for _, labels := range labelsOf(slices.DeleteFunc(slices.Clone(claims.Items), isLeaving)) {
		if err := deleteCache(ctx, log, shoot, labels); err != nil {
			return nil, err
		}
	}
	for _, claim := range claims.Items {
		found["PersistentVolumeClaim "+claim.Name] = cmp.Or(claim.DeletionTimestamp, ex.DeletionTimestamp) // a policy may refuse the deletion
	}
	for _, v := range volumes.Items {
		of := v.Spec.ClaimRef
		isOurs := of != nil && of.Namespace == metav1.NamespaceSystem && strings.HasPrefix(of.Name, cache.ClaimPrefix)
		isOurs = isOurs && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !volume.IsLocal(&v)
		switch {
		case isOurs && v.Status.Phase == corev1.VolumeReleased:
			found["PersistentVolume "+v.Name] = cmp.Or(v.Status.LastPhaseTransitionTime, &v.CreationTimestamp)
		case isOurs: // its claim has gone just now, if it has
			found["PersistentVolume "+v.Name] = ex.DeletionTimestamp
		}
	}
	return found, nil
}
