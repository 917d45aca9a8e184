package shoot

import (
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// growthWasRefused says whether the Shoot waits for a volume to grow whose StorageClass does not allow that. Then its spec
// has a size that no volume has, and going back to the one before is how its owner gets out of that.
func growthWasRefused(shoot *gardencorev1beta1.Shoot) bool {
	return slices.ContainsFunc(shoot.Status.LastErrors, func(e gardencorev1beta1.LastError) bool {
		return slices.Contains(e.Codes, gardencorev1beta1.ErrorConfigurationProblem) && strings.Contains(e.Description, v1alpha3.VolumeCannotGrow)
	})
}

// withSizesOf returns before with the sizes that config asks for. Whether a volume would shrink by them, the controller
// knows, and refuses it.
func withSizesOf(config, before *v1alpha3.RegistryConfig) *v1alpha3.RegistryConfig {
	before = before.DeepCopy()
	for i := range before.Caches {
		was := &before.Caches[i]
		for _, now := range config.Caches {
			if now.Upstream == was.Upstream {
				setSize(was, now)
			}
		}
	}
	return before
}

func setSize(was *v1alpha3.RegistryCache, now v1alpha3.RegistryCache) {
	volume := &v1alpha3.Volume{}
	if was.Volume != nil {
		volume.StorageClassName = was.Volume.StorageClassName
	}
	if now.Volume != nil {
		volume.Size = now.Volume.Size
	}
	was.Volume = volume
}
