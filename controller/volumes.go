package controller

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/volume"
)

// growVolumes grows the volumes of caches whose configured size has increased, and returns the
// caches whose StatefulSets it deleted. If a volume cannot grow, the target's config gets the
// previous size of the volume, and the target's errors get the reason. In a hibernated shoot no
// volume grows. The first reconciliation after the shoot wakes up grows the volumes.
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
		if t.hibernationEnabled() {
			if was != nil {
				c.Volume.Size = was.Volume.Size
			}
			continue
		}
		// Claims may exist even if no size is recorded: from an older version or a failed attempt.
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
			if was != nil { // someone may have increased the claim manually
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
		cause = fmt.Sprintf("the Shoot's API server rejects it for PersistentVolumeClaim %s: %s; fix the cause, ", why.Claim, why.Reason)
	}
	return field.Forbidden(path, fmt.Sprintf(
		v1alpha3.VolumeCannotGrow+" from %s to %s: %sgo back to the previous size, or remove the cache and add it again in a later update",
		why.Size.String(), c.Volume.Size.String(), cause))
}

// replaceStranded resets caches whose volumes are bound to nodes that no longer exist. A cache that
// was never deployed has no volume.
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
		log.Info("Deleted the claim of a cache, because its volume is bound to nodes that no longer exist; the cache starts empty",
			"upstream", s.Upstream, "persistentVolumeClaim", s.Claim, "persistentVolume", s.Volume)
		volumesStranded.Inc()
	}
	return err
}

// awaitReplaced waits until the StatefulSets are recreated: only then is the bigger size deployed.
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

// removeOrphans deletes the pods and claims of caches that are about to be removed, if an
// interrupted growth has deleted their StatefulSets.
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
