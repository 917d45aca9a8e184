package shoot

import (
	"regexp"
	"slices"
	"strconv"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// refusedGrowth matches what the controller says of a cache whose volume cannot grow; it captures the cache's index.
var refusedGrowth = regexp.MustCompile(`caches\[([0-9]+)\]\.volume\.size: Forbidden: ` + v1alpha3.VolumeCannotGrow)

// cachesThatCannotGrow returns the indices of the caches for which the Shoot waits until their volume grows, although its
// StorageClass does not allow that. Then the Shoot's spec has a size that no volume has, and going back to the one before is
// how its owner gets out of that.
func cachesThatCannotGrow(shoot *gardencorev1beta1.Shoot) []int {
	var indices []int
	for _, lastError := range shoot.Status.LastErrors {
		if !slices.Contains(lastError.Codes, gardencorev1beta1.ErrorConfigurationProblem) {
			continue
		}
		for _, match := range refusedGrowth.FindAllStringSubmatch(lastError.Description, -1) {
			if index, err := strconv.Atoi(match[1]); err == nil {
				indices = append(indices, index)
			}
		}
	}
	return indices
}

// withSizesOf returns before with the sizes that config asks for in those of its caches. Whether a volume would shrink by
// them, the controller knows, and refuses it.
func withSizesOf(config, before *v1alpha3.RegistryConfig, indices []int) *v1alpha3.RegistryConfig {
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
