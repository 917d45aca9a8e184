package shoot

import (
	"regexp"
	"slices"
	"strconv"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// failedGrowth matches the controller's error for a volume that cannot grow. It captures the index
// of the cache.
var failedGrowth = regexp.MustCompile(`caches\[([0-9]+)\]\.volume\.size: Forbidden: ` + v1alpha3.VolumeCannotGrow)

// cachesThatCannotGrow returns the indices of the caches whose last reconciliation failed because
// the volume cannot grow. The Shoot's spec then has a size that the volume does not have, and the
// owner must be able to go back to the previous size.
func cachesThatCannotGrow(shoot *gardencorev1beta1.Shoot) []int {
	var indices []int
	for _, lastError := range shoot.Status.LastErrors {
		if !slices.Contains(lastError.Codes, gardencorev1beta1.ErrorConfigurationProblem) {
			continue
		}
		for _, match := range failedGrowth.FindAllStringSubmatch(lastError.Description, -1) {
			if index, err := strconv.Atoi(match[1]); err == nil {
				indices = append(indices, index)
			}
		}
	}
	return indices
}

// copySizes returns a copy of before, in which the caches with these indices have the sizes of
// config. The controller knows the real size of the volume and rejects a smaller one.
func copySizes(config, before *v1alpha3.RegistryConfig, indices []int) *v1alpha3.RegistryConfig {
	before = before.DeepCopy()
	for i := range before.Caches {
		was := &before.Caches[i]
		for _, now := range config.Caches {
			if now.Upstream == was.Upstream && slices.Contains(indices, i) {
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
