package v1alpha3

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateUniqueUpstreams finds caches of the same registry, whichever way its name is spelled.
func validateUniqueUpstreams(caches []RegistryCache, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]string{}
	for i := range caches {
		upstream := caches[i].Upstream
		key := registryOf(&caches[i])
		first, taken := seen[key]
		switch {
		case strings.Contains(upstream, "@"): // refused already, and what is in it is not repeated
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

// registryOf returns a text that is equal for two upstreams if they are the same registry: the port that the scheme of
// its URL implies is the same as none, and index.docker.io is the old name of docker.io, which containerd replaces
// (github.com/distribution/reference, ParseNormalizedNamed). An IP address has one spelling only, see checkHostPort.
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

// validateUniqueServices finds caches whose Service would have the name of another one's. The name that a Service has
// without a suffix is taken even if its own cache has a suffix: without that, moving a name from one cache to another
// would make nodes ask the wrong one.
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
