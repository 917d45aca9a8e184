package v1alpha3

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxUpstreamLength is the maximum length of an upstream in bytes. On nodes, a directory is named
// after the upstream, and NAME_MAX of Linux is 255.
const maxUpstreamLength = 255

// minSize excludes sizes without a unit or in thousandths ("100m"): no image fits on such a volume.
var minSize = resource.MustParse("1Mi")

// Validate checks config, with or without defaults, and returns all errors with their field paths.
// On nodes, upstream and remoteURL become arguments of a shell script and strings in TOML and YAML.
// Neither may contain a character that is special in any of these. Validate does not check
// referenced Secrets (see References).
func Validate(config *RegistryConfig) field.ErrorList {
	path := field.NewPath("caches")
	if len(config.Caches) == 0 {
		return field.ErrorList{field.Required(path, "at least one cache is required")}
	}
	var errs field.ErrorList
	for i := range config.Caches {
		errs = append(errs, validateCache(&config.Caches[i], path.Index(i))...)
	}
	errs = append(errs, validateUniqueUpstreams(config.Caches, path)...)
	return append(errs, validateUniqueServices(config.Caches, path)...)
}

func validateCache(cache *RegistryCache, path *field.Path) field.ErrorList {
	errs := validateUpstream(cache.Upstream, path.Child("upstream"))
	if cache.RemoteURL != nil && *cache.RemoteURL != defaultRemoteURL(cache.Upstream) { // the default URL is valid if the upstream is valid
		errs = append(errs, validateURL(cache.RemoteURL, path.Child("remoteURL"))...)
	} else if len(errs) == 0 && isLoopback(cache.Upstream) {
		errs = append(errs, field.Invalid(path.Child("upstream"), cache.Upstream, "is the pod of the cache itself; set remoteURL to where it fetches from"))
	}
	if cache.Volume != nil {
		errs = append(errs, validateVolume(cache.Volume, path.Child("volume"))...)
	}
	if gc := cache.GarbageCollection; gc != nil && gc.TTL.Duration != 0 && gc.TTL.Duration < time.Second {
		errs = append(errs, field.Invalid(path.Child("garbageCollection", "ttl"), gc.TTL.Duration.String(),
			"must be at least 1s; 0s turns garbage collection off"))
	}
	errs = append(errs, validateReferenceName(cache.SecretReferenceName, path.Child("secretReferenceName"))...)
	errs = append(errs, validateReferenceName(cache.CABundleSecretReferenceName, path.Child("caBundleSecretReferenceName"))...)
	if cache.Proxy != nil {
		errs = append(errs, validateProxy(cache.Proxy, path.Child("proxy"))...)
	}
	return append(errs, validateServiceNameSuffix(cache.ServiceNameSuffix, path.Child("serviceNameSuffix"))...)
}

func validateUpstream(upstream string, path *field.Path) field.ErrorList {
	switch {
	case upstream == "":
		return field.ErrorList{field.Required(path, "name the registry as image references do, such as docker.io")}
	case len(upstream) > maxUpstreamLength:
		return field.ErrorList{field.TooLong(path, upstream, maxUpstreamLength)}
	case strings.Contains(upstream, "@"):
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be <host>[:<port>], user information is not allowed")}
	case strings.Contains(upstream, "://"):
		return field.ErrorList{field.Invalid(path, upstream, "must be <host>[:<port>], without a scheme; set remoteURL to use a scheme")}
	}
	if err := checkHostPort(upstream); err != nil {
		return field.ErrorList{field.Invalid(path, upstream, fmt.Sprintf("must be <host>[:<port>]: %v", err))}
	}
	return nil
}

// validateURL accepts <scheme>://<host>[:<port>] with scheme http or https. It also accepts a
// trailing slash, as gardener/gardener-extension-registry-cache does. SetDefaults removes it.
func validateURL(text *string, path *field.Path) field.ErrorList {
	if text == nil {
		return nil
	}
	invalid := func(reason string) field.ErrorList {
		// The error does not contain the value, because the value may contain credentials.
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be <scheme>://<host>[:<port>]: "+reason)}
	}
	parsed, err := url.Parse(*text)
	switch {
	case err != nil:
		return invalid("not a URL")
	case parsed.User != nil:
		return invalid("user information is not allowed")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return invalid("the scheme must be http or https")
	case strings.TrimSuffix(*text, "/") != parsed.Scheme+"://"+parsed.Host:
		return invalid("a path, query or fragment is not allowed")
	}
	if err := checkHostPort(parsed.Host); err != nil {
		return invalid(err.Error())
	}
	if isLoopback(parsed.Host) {
		return invalid("the host is the pod of the cache itself")
	}
	return nil
}

func validateVolume(volume *Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if volume.Size != nil && volume.Size.Cmp(minSize) < 0 {
		errs = append(errs, field.Invalid(path.Child("size"), volume.Size.String(), "must be at least 1Mi; use a unit such as Gi"))
	}
	if volume.StorageClassName != nil {
		for _, reason := range validation.IsDNS1123Subdomain(*volume.StorageClassName) {
			errs = append(errs, field.Invalid(path.Child("storageClassName"), *volume.StorageClassName, reason))
		}
	}
	return errs
}

// validateReferenceName accepts any non-empty name, as Gardener does for spec.resources[].name. The
// extension only looks it up there. No object gets this name.
func validateReferenceName(name *string, path *field.Path) field.ErrorList {
	if name != nil && *name == "" {
		return field.ErrorList{field.Required(path, "name an entry of the Shoot's spec.resources, or omit the field")}
	}
	return nil
}

func validateServiceNameSuffix(suffix *string, path *field.Path) field.ErrorList {
	if suffix == nil {
		return nil
	}
	if len(*suffix) > MaxServiceNameSuffixLength {
		return field.ErrorList{field.TooLong(path, *suffix, MaxServiceNameSuffixLength)}
	}
	var errs field.ErrorList
	for _, reason := range validation.IsDNS1123Label(*suffix) {
		errs = append(errs, field.Invalid(path, *suffix, reason))
	}
	return errs
}

// validateUniqueUpstreams reports caches of the same registry, even if they spell it differently.
func validateUniqueUpstreams(caches []RegistryCache, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]string{}
	for i := range caches {
		upstream := caches[i].Upstream
		key := registryOf(&caches[i])
		first, taken := seen[key]
		switch {
		case strings.Contains(upstream, "@"): // already rejected; the upstream may contain a password
		case !taken:
			seen[key] = upstream
		default:
			duplicate := field.Duplicate(path.Index(i).Child("upstream"), upstream)
			if first != upstream {
				duplicate.Detail = fmt.Sprintf("is the same registry as %s", first)
			}
			errs = append(errs, duplicate)
		}
	}
	return errs
}

// registryOf returns a key that is equal for upstreams of the same registry. The default port of
// the scheme and no port give the same key. containerd replaces index.docker.io, the old name of
// docker.io, with docker.io (github.com/distribution/reference, ParseNormalizedNamed). An IP
// address has only one valid spelling (see checkHostPort).
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
// of a cache's Service is reserved even if the cache has a suffix. Otherwise a name could move from
// one cache to another, and nodes would pull through the wrong cache.
func validateUniqueServices(caches []RegistryCache, path *field.Path) field.ErrorList {
	owners := map[string]string{}
	identities := Identify(caches, nil)
	for _, id := range identities {
		owners[id.Name] = id.Upstream
	}
	var errs field.ErrorList
	for i := range caches {
		if caches[i].ServiceNameSuffix == nil {
			continue
		}
		name := identities[i].ServiceName(&caches[i])
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
