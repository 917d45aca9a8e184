package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// Overlay returns a copy of base, the testbed's Shoot, with these fields of the manifest: labels,
// annotations, extensions, resources, purpose, hibernation, maintenance, monitoring and
// systemComponents. The other fields are those of base, because the clusters already exist. Overlay
// also returns the fields of the manifest whose values it did not use. It changes neither argument.
func Overlay(manifest, base *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, []Replacement, error) {
	shoot, wanted := base.DeepCopy(), manifest.DeepCopy()
	shoot.Labels = utils.MergeStringMaps(wanted.Labels, base.Labels) // the value of base wins
	shoot.Annotations = utils.MergeStringMaps(wanted.Annotations, base.Annotations)
	// This annotation requests an operation of gardenlet. Only the testbed's commands may set it.
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

// Replacement is a field of the manifest whose value is not used.
type Replacement struct {
	Path string `json:"path"` // the path of the field, for example spec.region
	// Manifest is the value in the manifest, and Testbed is the value that is used instead. Both are
	// empty for objects and lists. Testbed is also empty if the testbed's Shoot lacks the field.
	Manifest string `json:"manifest,omitempty"`
	Testbed  string `json:"testbed,omitempty"`
}

// String returns one line for users.
func (r Replacement) String() string {
	switch {
	case r.Manifest == "":
		return r.Path
	case r.Testbed == "":
		return fmt.Sprintf("%s (%s, none here)", r.Path, r.Manifest)
	}
	return fmt.Sprintf("%s (%s, here %s)", r.Path, r.Manifest, r.Testbed)
}

// compare returns the fields that are set in manifest but not equal in used, sorted by path.
func compare(manifest, used *gardencorev1beta1.Shoot) ([]Replacement, error) {
	wanted, wantedErr := runtime.DefaultUnstructuredConverter.ToUnstructured(manifest)
	given, givenErr := runtime.DefaultUnstructuredConverter.ToUnstructured(used)
	if err := errors.Join(wantedErr, givenErr); err != nil {
		return nil, fmt.Errorf("encode shoot %s: %w", manifest.Name, err)
	}
	return compareObjects("", wanted, given), nil
}

// compareObjects compares objects of both sides field by field, and other values as a whole.
func compareObjects(path string, manifest, used map[string]any) []Replacement {
	var found []Replacement
	for _, name := range slices.Sorted(maps.Keys(manifest)) {
		field := name
		if path != "" {
			field = path + "." + name
		}
		value, other := manifest[name], used[name]
		if isZero(value) || equality.Semantic.DeepEqual(value, other) {
			continue
		}
		object, isObject := value.(map[string]any)
		counterpart, bothObjects := other.(map[string]any)
		if isObject && bothObjects {
			found = append(found, compareObjects(field, object, counterpart)...)
			continue
		}
		found = append(found, Replacement{Path: field, Manifest: scalarText(value), Testbed: scalarText(other)})
	}
	return found
}

// isZero reports whether the value is a zero value. Some unset fields are encoded as zero values.
func isZero(value any) bool {
	switch value := value.(type) {
	case []any:
		return len(value) == 0
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(value)), func(inner any) bool { return !isZero(inner) })
	}
	return value == nil || value == "" || value == false || value == int64(0)
}

// scalarText returns the text of a scalar, and "" for objects, lists and fields that are not set.
func scalarText(value any) string {
	switch value.(type) {
	case nil, []any, map[string]any:
		return ""
	}
	return fmt.Sprint(value)
}
