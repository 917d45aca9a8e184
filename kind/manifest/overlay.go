package manifest

import (
	"maps"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// Overlay returns a copy of base, the testbed's Shoot, with the manifest's extensions and
// lifecycle: labels and annotations, spec.extensions, resources, purpose, hibernation, maintenance,
// monitoring and systemComponents. Name, networks, machines, versions and cloud stay those of base,
// because the clusters already exist. Overlay also returns the fields of the manifest that the
// result does not have. It changes neither argument.
func Overlay(manifest, base *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, []Replacement, error) {
	shoot, wanted := base.DeepCopy(), manifest.DeepCopy()
	shoot.Labels = merged(wanted.Labels, base.Labels)
	shoot.Annotations = merged(wanted.Annotations, base.Annotations)
	// This annotation requests an operation from gardenlet; here the command does that.
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

// merged returns the entries of both maps. If both have a key, winner decides.
func merged(entries, winner map[string]string) map[string]string {
	if entries == nil {
		return maps.Clone(winner)
	}
	all := maps.Clone(entries)
	maps.Copy(all, winner)
	return all
}
