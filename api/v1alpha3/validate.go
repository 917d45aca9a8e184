package v1alpha3

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxUpstreamLength is the longest upstream in bytes: on the nodes it is the name of a directory, and NAME_MAX of Linux
// is 255.
const maxUpstreamLength = 255

// Validate checks a RegistryConfig, before or after SetDefaults, and returns every mistake with its field path. Upstream
// and remoteURL become arguments of a shell script and strings in TOML and YAML on the nodes; a config without mistakes
// holds no character there that any of these treats specially.
func Validate(config *RegistryConfig) field.ErrorList {
	path := field.NewPath("caches")
	if len(config.Caches) == 0 {
		return field.ErrorList{field.Required(path, "at least one cache is required")}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range config.Caches {
		cache, path := &config.Caches[i], path.Index(i)
		errs = append(errs, validateCache(cache, path)...)
		if seen[cache.Upstream] {
			errs = append(errs, field.Duplicate(path.Child("upstream"), cache.Upstream))
		}
		seen[cache.Upstream] = true
	}
	return errs
}

func validateCache(cache *RegistryCache, path *field.Path) field.ErrorList {
	errs := validateUpstream(cache.Upstream, path.Child("upstream"))
	if cache.RemoteURL != nil {
		errs = append(errs, validateRemoteURL(*cache.RemoteURL, path.Child("remoteURL"))...)
	}
	if cache.Volume != nil {
		errs = append(errs, validateVolume(cache.Volume, path.Child("volume"))...)
	}
	if gc := cache.GarbageCollection; gc != nil && gc.TTL.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("garbageCollection", "ttl"), gc.TTL.Duration.String(),
			"must not be negative; 0s turns garbage collection off"))
	}
	return errs
}

func validateUpstream(upstream string, path *field.Path) field.ErrorList {
	if upstream == "" {
		return field.ErrorList{field.Required(path, "name the registry as image references do, such as docker.io")}
	}
	if len(upstream) > maxUpstreamLength {
		return field.ErrorList{field.TooLong(path, upstream, maxUpstreamLength)}
	}
	if err := checkHostPort(upstream); err != nil {
		return field.ErrorList{field.Invalid(path, upstream, fmt.Sprintf("must be <host>[:<port>]: %v", err))}
	}
	return nil
}

func validateRemoteURL(remoteURL string, path *field.Path) field.ErrorList {
	invalid := func(reason string) field.ErrorList {
		// The value is not repeated: it may carry credentials.
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be <scheme>://<host>[:<port>]: "+reason)}
	}
	parsed, err := url.Parse(remoteURL)
	switch {
	case err != nil:
		return invalid("not a URL")
	case parsed.User != nil:
		return invalid("user information is not allowed")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return invalid("the scheme must be http or https")
	case remoteURL != parsed.Scheme+"://"+parsed.Host:
		return invalid("a path, query or fragment is not allowed")
	}
	if err := checkHostPort(parsed.Host); err != nil {
		return invalid(err.Error())
	}
	return nil
}

func validateVolume(volume *Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if volume.Size != nil && volume.Size.Cmp(resource.Quantity{}) <= 0 {
		errs = append(errs, field.Invalid(path.Child("size"), volume.Size.String(), "must be greater than 0"))
	}
	if volume.StorageClassName != nil {
		for _, reason := range validation.IsDNS1123Subdomain(*volume.StorageClassName) {
			errs = append(errs, field.Invalid(path.Child("storageClassName"), *volume.StorageClassName, reason))
		}
	}
	return errs
}
