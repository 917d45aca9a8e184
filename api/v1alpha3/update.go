package v1alpha3

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateUpdate checks like Validate, and besides that config may follow old for the caches that are in both: a cache
// that runs keeps its volume, and a volume cannot shrink or move to another StorageClass. Each of the two may be given
// before or after SetDefaults. An upstream that old does not have is new and free of these rules. Without old it is
// Validate.
func ValidateUpdate(config, old *RegistryConfig) field.ErrorList {
	errs := Validate(config)
	if old == nil {
		return errs
	}
	before := map[string]*RegistryCache{}
	services := map[string]string{}
	for i := range old.Caches {
		before[old.Caches[i].Upstream] = &old.Caches[i]
		services[ServiceName(&old.Caches[i])] = old.Caches[i].Upstream
	}
	for i := range config.Caches {
		cache, path := &config.Caches[i], field.NewPath("caches").Index(i)
		if was, ok := before[cache.Upstream]; ok {
			errs = append(errs, validateCacheUpdate(cache, was, path)...)
		}
		errs = append(errs, validateServiceTakeover(cache, services, path)...)
	}
	return errs
}

func validateCacheUpdate(cache, was *RegistryCache, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if now, then := volumeSize(cache), volumeSize(was); now.Cmp(then) < 0 {
		errs = append(errs, field.Invalid(path.Child("volume", "size"), now.String(),
			fmt.Sprintf("must not be less than the %s that the volume has: volumes cannot shrink; %s", then.String(), recreate)))
	}
	if now, then := storageClass(cache), storageClass(was); now != then {
		errs = append(errs, field.Invalid(path.Child("volume", "storageClassName"), now,
			fmt.Sprintf("must stay %q; %s", then, recreate)))
	}
	if ttl(was) == 0 && ttl(cache) > 0 {
		errs = append(errs, field.Invalid(path.Child("garbageCollection", "ttl"), ttl(cache).String(),
			"must stay 0s: the registry does not know any more what to collect (distribution#4249); "+recreate))
	}
	return errs
}

// VolumeCannotGrow begins the reason of the mistake of a size that the StorageClass of a volume does not allow it to grow
// to. Only the controller can find that out, in the Shoot; whoever reads it in a Shoot's status knows that the volume has
// kept its size.
const VolumeCannotGrow = "the volume cannot grow"

// recreate says how to get what cannot be changed.
const recreate = "to change it, remove the cache from the Shoot and add it again in a later update, it starts empty"

// validateServiceTakeover refuses a name that the Service of another upstream has until now: nodes that do not know of
// the change yet would ask the new cache for images of the other upstream.
func validateServiceTakeover(cache *RegistryCache, services map[string]string, path *field.Path) field.ErrorList {
	owner, taken := services[ServiceName(cache)]
	if !taken || owner == cache.Upstream {
		return nil
	}
	if cache.ServiceNameSuffix == nil {
		return field.ErrorList{field.Forbidden(path.Child("upstream"), fmt.Sprintf(
			"its Service would be called %s, as the one of %s is until now; give that one another name first", ServiceName(cache), owner))}
	}
	return field.ErrorList{field.Invalid(path.Child("serviceNameSuffix"), *cache.ServiceNameSuffix, fmt.Sprintf(
		"the Service of %s has this name until now; free it in an update of its own first", owner))}
}

func volumeSize(cache *RegistryCache) resource.Quantity {
	if cache.Volume == nil || cache.Volume.Size == nil {
		return defaultVolumeSize()
	}
	return *cache.Volume.Size
}

// storageClass returns "" for the default StorageClass of the Shoot: as a name, Validate refuses it.
func storageClass(cache *RegistryCache) string {
	if cache.Volume == nil || cache.Volume.StorageClassName == nil {
		return ""
	}
	return *cache.Volume.StorageClassName
}

func ttl(cache *RegistryCache) time.Duration {
	if cache.GarbageCollection == nil {
		return DefaultTTL
	}
	return cache.GarbageCollection.TTL.Duration
}
