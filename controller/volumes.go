package controller

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/volume"
)

var volumesStranded = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "registry_cache_extension_volumes_stranded_total",
	Help: "Volumes of caches that were given up because they were bound to nodes that are gone.",
})

func init() {
	metrics.Registry.MustRegister(volumesStranded)
}

// growVolumes grows the volumes of the caches that are to be bigger than they were deployed, and returns the caches that
// lost their StatefulSet by that. A volume that cannot grow keeps its size in the target, and why goes to its refused
// fields. In a shoot that sleeps nothing can grow; the next reconciliation finds the difference again.
func (a *Actuator) growVolumes(ctx context.Context, log logr.Logger, t *target) ([]v1alpha3.RegistryCache, error) {
	if t.isNew {
		return nil, nil
	}
	var replaced []v1alpha3.RegistryCache
	for i := range t.config.Caches {
		c := &t.config.Caches[i]
		was := t.before.deployed(c.Upstream)
		if was != nil && was.Volume.Size.Cmp(*c.Volume.Size) == 0 {
			continue
		}
		if t.sleeps() {
			if was != nil {
				c.Volume.Size = was.Volume.Size
			}
			continue
		}
		// What was deployed is not known for a cache that an older version deployed, or that never came up.
		shoot, err := a.shoot(ctx, t)
		if err != nil {
			return nil, err
		}
		growth, err := volume.Grow(ctx, shoot, c)
		if err != nil {
			return nil, err
		}
		if growth.Grown {
			log.Info("Growing the volume of a cache", "upstream", c.Upstream, "size", c.Volume.Size)
			volumesGrown.Inc()
		}
		if growth.Replaced {
			replaced = append(replaced, *c)
		}
		if growth.Refused != nil {
			path := field.NewPath("caches").Index(i).Child("volume", "size")
			t.refused = append(t.refused, refusal(path, c, growth.Refused))
			c.Volume.Size = &growth.Refused.Size
			if was != nil { // somebody may have made the claim bigger than that by hand
				c.Volume.Size = was.Volume.Size
			}
		}
	}
	return replaced, nil
}

func refusal(path *field.Path, c *v1alpha3.RegistryCache, why *volume.Refusal) *field.Error {
	cause := fmt.Sprintf("StorageClass %q of PersistentVolumeClaim %s in the Shoot does not allow it; "+
		"set its field allowVolumeExpansion if its provisioner can expand volumes, ", why.StorageClass, why.Claim)
	if why.Reason != "" {
		cause = fmt.Sprintf("the Shoot's API server refuses it for PersistentVolumeClaim %s: %s; mend that, ", why.Claim, why.Reason)
	}
	return field.Forbidden(path, fmt.Sprintf(
		v1alpha3.VolumeCannotGrow+" from %s to %s: %sgo back to the size before, or remove the cache and add it again in a later update",
		why.Size.String(), c.Volume.Size.String(), cause))
}

// replaceStranded lets caches start again from nothing whose volumes are on nodes that are gone. A cache that never was
// deployed has none.
func (a *Actuator) replaceStranded(ctx context.Context, log logr.Logger, t *target) error {
	if t.before.empty() {
		return nil
	}
	shoot, err := a.shoot(ctx, t)
	if err != nil {
		return err
	}
	stranded, err := volume.ReplaceStranded(ctx, shoot, t.config.Caches)
	for _, s := range stranded {
		log.Info("Gave up the claim of a cache, whose volume is bound to nodes that are gone; the cache starts empty",
			"upstream", s.Upstream, "persistentVolumeClaim", s.Claim, "persistentVolume", s.Volume)
		volumesStranded.Inc()
	}
	return err
}

// awaitReplaced waits until the StatefulSets are back. Only then the bigger size counts as deployed.
func (a *Actuator) awaitReplaced(ctx context.Context, namespace string, replaced []v1alpha3.RegistryCache) error {
	for i := range replaced {
		shoot, err := a.shootClient(ctx, namespace)
		if err != nil {
			return err
		}
		if err := volume.AwaitReplaced(ctx, shoot, &replaced[i], a.waits.replaced); err != nil {
			return err
		}
	}
	return nil
}

// removeOrphans deletes what an interrupted growth left of caches that are about to be removed, or would stay for ever.
func (a *Actuator) removeOrphans(ctx context.Context, namespace string, upstreams []string) error {
	if len(upstreams) == 0 {
		return nil
	}
	shoot, err := a.shootClient(ctx, namespace)
	if err != nil {
		return err
	}
	for _, upstream := range upstreams {
		if err := volume.RemoveOrphans(ctx, shoot, upstream); err != nil {
			return err
		}
	}
	return nil
}
