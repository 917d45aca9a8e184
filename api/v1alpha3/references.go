package v1alpha3

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
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

// +k8s:deepcopy-gen=false

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

// ValidateEntry checks the entry of spec.resources that has the reference's name. to is its resourceRef, and empty if
// there is no such entry. Mistakes are at Path.
func (r Reference) ValidateEntry(to autoscalingv1.CrossVersionObjectReference) field.ErrorList {
	switch {
	case to == autoscalingv1.CrossVersionObjectReference{}:
		return r.invalid("must be the name of an entry of spec.resources")
	case to.APIVersion != corev1.SchemeGroupVersion.String() || to.Kind != "Secret":
		return r.invalid(fmt.Sprintf("must refer to a Secret of apiVersion v1, spec.resources has a %s of apiVersion %s", to.Kind, to.APIVersion))
	}
	return nil
}

// Missing returns the mistake of a reference to a Secret that does not exist. The namespace may be empty: then it is not
// named.
func (r Reference) Missing(namespace, name string) field.ErrorList {
	return r.invalid(fmt.Sprintf("refers to the Secret %s, which does not exist", qualified(namespace, name)))
}

func (r Reference) invalid(reason string) field.ErrorList {
	return field.ErrorList{field.Invalid(r.Path, r.Name, reason)}
}

// Validate checks that the Secret holds what the reference is for; mistakes are at its Path.
func (r Reference) Validate(secret *corev1.Secret) field.ErrorList {
	if r.Kind == ReferenceCABundle {
		return ValidateCABundle(secret, r.Path)
	}
	return ValidateCredentials(secret, r.Path)
}
