package v1alpha3

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// ValidateUpdate does what Validate does, and also checks changes to the caches of the old config.
// The volume of such a cache cannot move to another StorageClass. A TTL of 0s cannot be changed.
// The size of the volume may change. The configs may lack defaults. An upstream that is not in old
// can be configured freely. The names of Services follow from the recorded identities, if there are
// any, and otherwise from the old config. If old is nil, ValidateUpdate only calls Validate.
func ValidateUpdate(config, old *RegistryConfig, recorded Identities) field.ErrorList {
	errs := Validate(config)
	if old == nil {
		return errs
	}
	config, old = config.DeepCopy(), old.DeepCopy()
	SetDefaults(config)
	SetDefaults(old)
	before := map[string]*RegistryCache{}
	services := map[string]string{}
	running := Identify(old.Caches, recorded)
	for i := range old.Caches {
		before[old.Caches[i].Upstream] = &old.Caches[i]
		services[running[i].ServiceName(&old.Caches[i])] = old.Caches[i].Upstream
	}
	identities := Identify(config.Caches, slices.Concat(running, recorded))
	for i := range config.Caches {
		cache, path := &config.Caches[i], field.NewPath("caches").Index(i)
		if was, ok := before[cache.Upstream]; ok {
			errs = append(errs, validateCacheUpdate(cache, was, path)...)
		}
		errs = append(errs, validateServiceTakeover(cache, identities[i].ServiceName(cache), services, path)...)
	}
	return errs
}

// Replaces reports whether the cache differs from the previous one in an immutable field, and so is
// another cache of the same upstream. Defaults must be set in both.
func Replaces(cache, was *RegistryCache) bool {
	return len(validateCacheUpdate(cache, was, nil)) > 0
}

// validateCacheUpdate compares two caches in which defaults are set.
func validateCacheUpdate(cache, was *RegistryCache, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	// Nil stands for the default StorageClass of the Shoot. Validate rejects "" as a name.
	if now, then := ptr.Deref(cache.Volume.StorageClassName, ""), ptr.Deref(was.Volume.StorageClassName, ""); now != then {
		errs = append(errs, field.Invalid(path.Child("volume", "storageClassName"), now,
			fmt.Sprintf("cannot be changed from %q; %s", then, recreate)))
	}
	if now, then := cache.GarbageCollection.TTL.Duration, was.GarbageCollection.TTL.Duration; then == 0 && now > 0 {
		errs = append(errs, field.Invalid(path.Child("garbageCollection", "ttl"), now.String(),
			"must stay 0s: the registry no longer knows what to collect (distribution#4249); "+recreate))
	}
	return errs
}

// recreate is the advice for fields that cannot be changed.
const recreate = "to change it, remove the cache from the Shoot and add it again in a later update; it then starts empty"

// validateServiceTakeover rejects a cache's Service name that another upstream uses in the old
// config: a node with the old configuration would pull through the wrong cache.
func validateServiceTakeover(cache *RegistryCache, name string, services map[string]string, path *field.Path) field.ErrorList {
	owner, taken := services[name]
	if !taken || owner == cache.Upstream {
		return nil
	}
	if cache.ServiceNameSuffix == nil {
		return field.ErrorList{field.Forbidden(path.Child("upstream"), fmt.Sprintf(
			"its Service would be named %s, but the Service of %s has this name; rename that one in an earlier update", name, owner))}
	}
	return field.ErrorList{field.Invalid(path.Child("serviceNameSuffix"), *cache.ServiceNameSuffix, fmt.Sprintf(
		"the Service of %s has this name; rename that one in an earlier update", owner))}
}
