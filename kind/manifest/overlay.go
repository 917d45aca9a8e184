package manifest

import (
	"maps"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// Overlay returns base, the testbed's shoot, with what the manifest says about extensions and the life of the shoot: labels
// and annotations, spec.extensions, resources, purpose, hibernation, maintenance, monitoring and systemComponents. Everything
// else stays base's, because the clusters are there already: name, networks, machines, versions, cloud. The second value
// says what of the manifest is not in the result. Neither argument is changed.
func Overlay(manifest, base *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, []Replacement, error) {
	shoot, wanted := base.DeepCopy(), manifest.DeepCopy()
	shoot.Labels = merged(wanted.Labels, base.Labels)
	shoot.Annotations = merged(wanted.Annotations, base.Annotations)
	// It asks gardenlet for an operation; here the command says which one.
	delete(shoot.Annotations, v1beta1constants.GardenerOperation)

	shoot.Spec.Extensions = wanted.Spec.Extensions
	shoot.Spec.Resources = wanted.Spec.Resources
	shoot.Spec.Hibernation = wanted.Spec.Hibernation
	shoot.Spec.Maintenance = wanted.Spec.Maintenance
	shoot.Spec.Monitoring = wanted.Spec.Monitoring
	shoot.Spec.SystemComponents = wanted.Spec.SystemComponents
	if wanted.Spec.Purpose != nil {
		shoot.Spec.Purpose = wanted.Spec.Purpose
	}
	replaced, err := compare(manifest, shoot)
	return shoot, replaced, err
}

// merged returns the entries of both; those of winner count where both have one.
func merged(entries, winner map[string]string) map[string]string {
	if entries == nil {
		return maps.Clone(winner)
	}
	all := maps.Clone(entries)
	maps.Copy(all, winner)
	return all
}
