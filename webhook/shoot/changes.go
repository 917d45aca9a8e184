package shoot

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// relevantChange returns whether the update changes anything that matters to the extension. The
// formatting of a config and the order of entries do not matter. An update without a relevant
// change is not validated: otherwise it would be rejected if a referenced Secret has been deleted.
func relevantChange(shoot, old *gardencorev1beta1.Shoot) bool {
	names := referencedNames(shoot)
	return !slices.EqualFunc(configs(shoot), configs(old), sameConfig) ||
		!maps.Equal(targets(shoot, names), targets(old, names)) ||
		len(shoot.Spec.Provider.Workers) == 0 && len(old.Spec.Provider.Workers) > 0
}

// configs returns the providerConfigs of the extension's enabled entries. An element may be nil.
func configs(shoot *gardencorev1beta1.Shoot) [][]byte {
	var raw [][]byte
	for _, i := range extensionIndices(shoot) {
		raw = append(raw, configOf(shoot.Spec.Extensions[i]))
	}
	return raw
}

// sameConfig compares decoded configs. If one of them cannot be decoded, it compares bytes.
func sameConfig(now, before []byte) bool {
	if bytes.Equal(now, before) {
		return true
	}
	config, err := v1alpha3.DecodeConfig(now)
	if err != nil {
		return false
	}
	old, err := v1alpha3.DecodeConfig(before)
	return err == nil && equality.Semantic.DeepEqual(config, old)
}

// targets returns the resourceRefs of the entries of spec.resources with these names.
func targets(shoot *gardencorev1beta1.Shoot, names []string) map[string]autoscalingv1.CrossVersionObjectReference {
	byName := map[string]autoscalingv1.CrossVersionObjectReference{}
	for _, resource := range shoot.Spec.Resources {
		if slices.Contains(names, resource.Name) {
			byName[resource.Name] = resource.ResourceRef
		}
	}
	return byName
}

func referencedNames(shoot *gardencorev1beta1.Shoot) []string {
	config, err := v1alpha3.DecodeConfig(providerConfig(shoot))
	if err != nil {
		return nil // Check rejects this config if the update has changed it
	}
	var names []string
	for _, reference := range v1alpha3.References(config) {
		names = append(names, reference.Name)
	}
	return names
}

// failedGrowth matches the controller's error for a volume that cannot grow. It captures the
// cache's index.
var failedGrowth = regexp.MustCompile(`caches\[([0-9]+)\]\.volume\.size: Forbidden: ` + v1alpha3.VolumeCannotGrow)

// cachesThatCannotGrow returns the indices of the caches whose last reconciliation failed because
// the volume cannot grow. For them, the Shoot's spec has a size that the volume does not have, and
// the owner must be able to go back to the previous size.
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

// copySizes returns a copy of the old config in which the caches with these indices have the sizes
// of the new config. The controller rejects sizes below the real size of the volume.
func copySizes(config, before *v1alpha3.RegistryConfig, indices []int) *v1alpha3.RegistryConfig {
	before = before.DeepCopy()
	v1alpha3.SetDefaults(before)
	for i := range before.Caches {
		was := &before.Caches[i]
		for _, now := range config.Caches {
			if now.Upstream == was.Upstream && slices.Contains(indices, i) {
				was.Volume.Size = ptr.Deref(now.Volume, v1alpha3.Volume{}).Size
			}
		}
	}
	return before
}
