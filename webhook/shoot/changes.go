package shoot

import (
	"bytes"
	"maps"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// relevantChange reports whether the update changes anything that matters to the extension. The
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

// sameConfig reports whether the configs are equal, decoded if both can be decoded.
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

// targets returns the resourceRefs of the entries of spec.resources with the given names.
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
