package controller

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/controller/volume"
)

// adaptVolumes grows the volumes that are smaller than configured, deletes those of replicas that
// a cache no longer has and of caches that are left over, and resets caches whose volumes are
// bound to nodes that no longer exist. A growth or deletion that the shoot refuses is no error:
// the condition CachesHealthy reports it (package health).
func (a *Actuator) adaptVolumes(ctx context.Context, log logr.Logger, t *target) error {
	shoot, err := a.shoot(ctx, t)
	if err != nil {
		return err
	}
	claims, others, err := volume.Claims(ctx, shoot, t.config.Caches, t.identities)
	if err != nil {
		return err
	}
	if err := a.removeLeftovers(ctx, log, t, slices.Clone(claims), others); err != nil {
		return err
	}
	for _, claim := range claims {
		log := log.WithValues("upstream", claim.Cache.Upstream, "persistentVolumeClaim", claim.Name)
		switch {
		case claim.DeletionTimestamp != nil: // of an earlier cache of the upstream, perhaps
		case claim.Surplus():
			if err := unlessRefused(log, claim.Delete(ctx, shoot), "deleting the claim of a removed replica"); err != nil {
				return err
			}
		case claim.TooSmall() && claim.Bound():
			err := claim.Grow(ctx, shoot)
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
	stranded, err := volume.ReplaceStranded(ctx, shoot, claims)
	for _, claim := range stranded {
		log.Info("Deleted the claim of a cache, because its volume is bound to nodes that no longer exist; the cache starts empty",
			"upstream", claim.Cache.Upstream, "persistentVolumeClaim", claim.Name, "persistentVolume", claim.Spec.VolumeName)
		a.tell(t.ex, corev1.EventTypeWarning, "VolumeReplaced", "cache of %s: claim %s was deleted, because its volume is bound to nodes that "+
			"no longer exist; the cache starts empty", claim.Cache.Upstream, claim.Name)
		volumesStranded.Inc()
	}
	return unlessRefused(log, err, "replacing volumes")
}
