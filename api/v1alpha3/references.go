package v1alpha3

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReferenceKind says what a referenced Secret holds.
type ReferenceKind string

const (
	// ReferenceCredentials is a Secret that ValidateCredentials accepts.
	ReferenceCredentials ReferenceKind = "credentials"
	// ReferenceCABundle is a Secret that ValidateCABundle accepts.
	ReferenceCABundle ReferenceKind = "CA bundle"
)

// Reference is a use of an entry of the Shoot's spec.resources, which must refer to a Secret.
type Reference struct {
	// Name is spec.resources[].name.
	Name string
	// Upstream is the upstream of the cache that needs the Secret.
	Upstream string
	Kind     ReferenceKind
	// Path is the field of the RegistryConfig that has the name.
	Path *field.Path
}

// References returns every reference of a config, in the order of its caches. One entry of spec.resources may be
// referred to more than once.
func References(config *RegistryConfig) []Reference {
	var references []Reference
	for i := range config.Caches {
		cache, path := &config.Caches[i], field.NewPath("caches").Index(i)
		if name := cache.SecretReferenceName; name != nil {
			references = append(references, Reference{*name, cache.Upstream, ReferenceCredentials, path.Child("secretReferenceName")})
		}
		if name := cache.CABundleSecretReferenceName; name != nil {
			references = append(references, Reference{*name, cache.Upstream, ReferenceCABundle, path.Child("caBundleSecretReferenceName")})
		}
	}
	return references
}

// Validate checks that the Secret holds what the reference is for; mistakes are at its Path.
func (r Reference) Validate(secret *corev1.Secret) field.ErrorList {
	if r.Kind == ReferenceCABundle {
		return ValidateCABundle(secret, r.Path)
	}
	return ValidateCredentials(secret, r.Path)
}
