package v1alpha3

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReferenceKind is the kind of content of a referenced Secret.
type ReferenceKind string

const (
	// ReferenceCredentials is the kind of a Secret that ValidateCredentials checks.
	ReferenceCredentials ReferenceKind = "credentials"
	// ReferenceCABundle is the kind of a Secret that ValidateCABundle checks.
	ReferenceCABundle ReferenceKind = "CA bundle"
)

// +k8s:deepcopy-gen=false

// Reference is a cache's reference to an entry of the Shoot's spec.resources, and so to a Secret.
type Reference struct {
	// Name is spec.resources[].name.
	Name string
	// Upstream is the upstream of the cache.
	Upstream string
	Kind     ReferenceKind
	// Path is the path of the field of the RegistryConfig that contains Name.
	Path *field.Path
}

// References returns the references of config in the order of its caches. Names may repeat.
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

// ValidateEntry checks the entry called Name in spec.resources: target is its resourceRef, or empty
// if there is no such entry. Errors are reported at Path.
func (r Reference) ValidateEntry(target autoscalingv1.CrossVersionObjectReference) field.ErrorList {
	switch {
	case target == autoscalingv1.CrossVersionObjectReference{}:
		return r.invalid("must be the name of an entry of spec.resources")
	case target.APIVersion != corev1.SchemeGroupVersion.String() || target.Kind != "Secret":
		return r.invalid(fmt.Sprintf("must refer to a Secret of apiVersion v1, but the entry refers to a %s of apiVersion %s", target.Kind, target.APIVersion))
	}
	return nil
}

// Missing returns the error for a Secret that does not exist. The namespace may be empty.
func (r Reference) Missing(namespace, name string) field.ErrorList {
	return r.invalid(fmt.Sprintf("refers to the Secret %s, which does not exist", qualified(namespace, name)))
}

func (r Reference) invalid(reason string) field.ErrorList {
	return field.ErrorList{field.Invalid(r.Path, r.Name, reason)}
}

// Validate checks the content of the Secret. Errors are reported at Path.
func (r Reference) Validate(secret *corev1.Secret) field.ErrorList {
	if r.Kind == ReferenceCABundle {
		return ValidateCABundle(secret, r.Path)
	}
	return ValidateCredentials(secret, r.Upstream, r.Path)
}
