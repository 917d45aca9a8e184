package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// awaitNoVolumes deletes what is left of all caches, and waits until their disks are gone: a
// deleted shoot next loses the controllers that delete disks, and a leftover disk costs money
// forever. It stops waiting when volumesLimit has passed since the deletion was requested.
func (a *Actuator) awaitNoVolumes(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.await(ctx, func() error {
		remaining, err := a.removeCaches(ctx, log, ex)
		if err != nil && a.isOver(ex.DeletionTimestamp) {
			log.Info("Not waiting any longer for the volumes of caches", "reason", err.Error()) // perhaps the shoot's API server never ran
			return nil
		}
		if err != nil || len(remaining) == 0 {
			return err
		}
		return retry.Waiting(fmt.Errorf("volumes of caches are still being deleted in the shoot: %s", strings.Join(remaining, ", ")))
	})
}

// isOver reports whether volumesLimit has passed since the time.
func (a *Actuator) isOver(since *metav1.Time) bool {
	return since != nil && a.clock.Since(since.Time) >= volumesLimit
}
