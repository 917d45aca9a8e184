package manifest

import (
	"fmt"
	"maps"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// Replacement is a field of a manifest whose value is not used.
type Replacement struct {
	// Path is the path of the field, such as spec.region.
	Path string `json:"path"`
	// Manifest is the value in the manifest, Testbed the one that is used. They are empty for what is no single value, and
	// Testbed also for a field that the testbed's shoot does not have.
	Manifest string `json:"manifest,omitempty"`
	Testbed  string `json:"testbed,omitempty"`
}

// String describes the replacement in a few words.
func (r Replacement) String() string {
	switch {
	case r.Manifest == "":
		return r.Path
	case r.Testbed == "":
		return fmt.Sprintf("%s (%s, none here)", r.Path, r.Manifest)
	}
	return fmt.Sprintf("%s (%s, here %s)", r.Path, r.Manifest, r.Testbed)
}

// compare lists the fields of manifest that used does not have with the same value, sorted by path.
func compare(manifest, used *gardencorev1beta1.Shoot) ([]Replacement, error) {
	var fields [2]map[string]any
	for i, shoot := range []*gardencorev1beta1.Shoot{manifest, used} {
		var err error
		if fields[i], err = runtime.DefaultUnstructuredConverter.ToUnstructured(shoot); err != nil {
			return nil, fmt.Errorf("encode shoot %s: %w", shoot.Name, err)
		}
	}
	return differences("", fields[0], fields[1]), nil
}

// differences descends into objects that both sides have, and into those that only one has as a whole; lists are compared as
// a whole.
func differences(path string, manifest, used map[string]any) []Replacement {
	var found []Replacement
	for _, name := range slices.Sorted(maps.Keys(manifest)) {
		field := name
		if path != "" {
			field = path + "." + name
		}
		value, other := manifest[name], used[name]
		if empty(value) || equality.Semantic.DeepEqual(value, other) {
			continue
		}
		object, isObject := value.(map[string]any)
		counterpart, bothObjects := other.(map[string]any)
		if isObject && bothObjects {
			found = append(found, differences(field, object, counterpart)...)
			continue
		}
		found = append(found, Replacement{Path: field, Manifest: single(value), Testbed: single(other)})
	}
	return found
}

// empty says whether the value is what Go's types encode for a field that is not set.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case bool:
		return !value
	case int64:
		return value == 0
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, inner := range value {
			if !empty(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// single returns the text of a single value; "" for objects, lists and what is not set.
func single(value any) string {
	switch value.(type) {
	case nil, []any, map[string]any:
		return ""
	}
	return fmt.Sprint(value)
}
