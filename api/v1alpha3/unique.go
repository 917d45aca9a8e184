package v1alpha3

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateUniqueUpstreams reports caches of the same registry, however its name is spelled.
func validateUniqueUpstreams(caches []RegistryCache, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]string{}
	for i := range caches {
		upstream := caches[i].Upstream
		key := registryOf(&caches[i])
		first, taken := seen[key]
		switch {
		case strings.Contains(upstream, "@"): // already rejected, and it may contain a password
		case !taken:
			seen[key] = upstream
		case first == upstream:
			errs = append(errs, field.Duplicate(path.Index(i).Child("upstream"), upstream))
		default:
			duplicate := field.Duplicate(path.Index(i).Child("upstream"), upstream)
			duplicate.Detail = fmt.Sprintf("is the same registry as %s", first)
			errs = append(errs, duplicate)
		}
	}
	return errs
}

// registryOf returns a key that is equal for upstreams of the same registry. The default port of
// the scheme equals no port. index.docker.io is the old name of docker.io, which containerd
// replaces (github.com/distribution/reference, ParseNormalizedNamed). An IP address has only one
// valid spelling, see checkHostPort.
func registryOf(cache *RegistryCache) string {
	port := ":443"
	if cache.RemoteURL != nil && strings.HasPrefix(*cache.RemoteURL, "http://") {
		port = ":80"
	}
	host := strings.TrimSuffix(cache.Upstream, port)
	if host == "index.docker.io" {
		return dockerHub
	}
	return host
}

// validateUniqueServices reports caches whose Services would have the same name. The default name
// of a cache's Service stays reserved even if the cache has a suffix. Otherwise a name could move
// from one cache to another, and nodes would ask the wrong one.
func validateUniqueServices(caches []RegistryCache, path *field.Path) field.ErrorList {
	owners := map[string]string{}
	for i := range caches {
		owners[Name(caches[i].Upstream)] = caches[i].Upstream
	}
	var errs field.ErrorList
	for i := range caches {
		if caches[i].ServiceNameSuffix == nil {
			continue
		}
		name := ServiceName(&caches[i])
		if owner, taken := owners[name]; taken && owner != caches[i].Upstream {
			duplicate := field.Duplicate(path.Index(i).Child("serviceNameSuffix"), *caches[i].ServiceNameSuffix)
			duplicate.Detail = fmt.Sprintf("the Service %s belongs to the cache of %s", name, owner)
			errs = append(errs, duplicate)
			continue
		}
		owners[name] = caches[i].Upstream
	}
	return errs
}
