package v1alpha3

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Keys and limits of referenced Secrets.
const (
	KeyUsername = "username"
	KeyPassword = "password"
	KeyCABundle = "bundle.crt"
	// The keys of a Secret with an access key of AWS. The last two are optional.
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
	KeySessionToken    = "sessionToken"
	KeyRoleARN         = "roleARN"
	// MaxCABundleSize is the maximum size of a CA bundle in bytes. Nodes store it in several files.
	MaxCABundleSize = 64 * 1024
	// MaxCABundlesSize is the maximum size of all results of CABundle together, in bytes. A Secret
	// that two caches refer to counts twice. All bundles are in one line of a systemd unit, and in one
	// Secret for gardener-node-agent. Each of the two is limited to 1 MiB (systemd.syntax(7)).
	MaxCABundlesSize = 256 * 1024
)

// ValidateCABundle checks the Secret that RegistryCache.CABundleSecretReferenceName refers to. It
// must be immutable and have exactly the key "bundle.crt", with at least one PEM certificate and at
// most MaxCABundleSize bytes. Text between the certificates is allowed, other PEM blocks are not.
// Errors are reported at path.
func ValidateCABundle(secret *corev1.Secret, path *field.Path) field.ErrorList {
	errs := validateSecret(secret, path, []string{KeyCABundle})
	bundle, ok := secret.Data[KeyCABundle]
	if !ok {
		return errs
	}
	if len(bundle) > MaxCABundleSize {
		return append(errs, invalidSecret(secret, path,
			fmt.Sprintf("has %d bytes for the key %q, at most %d are allowed", len(bundle), KeyCABundle, MaxCABundleSize)))
	}
	if _, err := certificates(bundle); err != nil {
		errs = append(errs, invalidSecret(secret, path, fmt.Sprintf("must hold PEM certificates in the key %q: %v", KeyCABundle, err)))
	}
	return errs
}

// CABundle returns the certificates of a Secret that ValidateCABundle accepts, in canonical PEM:
// without other text, in lines of 64 characters that end with a line feed. For any other Secret it
// returns nil.
func CABundle(secret *corev1.Secret) []byte {
	blocks, err := certificates(secret.Data[KeyCABundle])
	if err != nil {
		return nil
	}
	var bundle []byte
	for _, block := range blocks {
		bundle = append(bundle, pem.EncodeToMemory(block)...)
	}
	return bundle
}

// ValidateCABundles checks the total size of CA bundles: the results of CABundle, by upstream. If
// the sum exceeds MaxCABundlesSize, there is one error, at the first cache whose bundle does not
// fit.
func ValidateCABundles(config *RegistryConfig, bundles map[string][]byte) field.ErrorList {
	sum, path := 0, (*field.Path)(nil)
	for _, reference := range References(config) {
		if reference.Kind != ReferenceCABundle {
			continue
		}
		if sum += len(bundles[reference.Upstream]); sum > MaxCABundlesSize && path == nil {
			path = reference.Path
		}
	}
	if path == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
		"the CA bundles of all caches have %d bytes in total, at most %d are allowed: remove the CAs that no upstream needs",
		sum, MaxCABundlesSize))}
}

// certificates decodes PEM strictly, because package pem skips blocks that it cannot decode, and
// x509.CertPool skips certificates with headers.
func certificates(bundle []byte) ([]*pem.Block, error) {
	begins := bytes.Count(bundle, []byte("-----BEGIN "))
	var blocks []*pem.Block
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("block %d is a %s", len(blocks)+1, block.Type)
		}
		if len(block.Headers) > 0 {
			return nil, fmt.Errorf("certificate %d has PEM headers", len(blocks)+1)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w", len(blocks)+1, err)
		}
		blocks = append(blocks, block)
	}
	switch {
	case begins == 0:
		return nil, errors.New("none found")
	case begins != len(blocks):
		return nil, fmt.Errorf("only %d of %d blocks can be read", len(blocks), begins)
	}
	return blocks, nil
}

// validateSecret checks the requirements for every referenced Secret. It must be immutable, so that
// its content stays as checked; a rotation must refer to another Secret.
func validateSecret(secret *corev1.Secret, path *field.Path, required []string, optional ...string) field.ErrorList {
	var errs field.ErrorList
	if secret.Immutable == nil || !*secret.Immutable {
		errs = append(errs, invalidSecret(secret, path, "must be immutable (immutable: true); to rotate it, refer to a new Secret"))
	}
	for _, key := range required {
		if _, ok := secret.Data[key]; !ok {
			errs = append(errs, invalidSecret(secret, path, fmt.Sprintf("lacks the key %q", key)))
		}
	}
	keys := slices.Concat(required, optional)
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		if !slices.Contains(keys, key) {
			errs = append(errs, invalidSecret(secret, path,
				fmt.Sprintf("must have no keys other than %s, but has %q", strings.Join(keys, ", "), key)))
		}
	}
	return errs
}

func invalidSecret(secret *corev1.Secret, path *field.Path, reason string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the Secret %s %s", qualified(secret.Namespace, secret.Name), reason))
}

// qualified returns namespace/name, or only the name if the namespace is empty.
func qualified(namespace, name string) string {
	return strings.TrimPrefix(namespace+"/"+name, "/")
}

// ReferenceKind is the kind of content of a referenced Secret.
type ReferenceKind string

const (
	// ReferenceCredentials is for a Secret that ValidateCredentials accepts for the upstream.
	ReferenceCredentials ReferenceKind = "credentials"
	// ReferenceCABundle is for a Secret that ValidateCABundle accepts.
	ReferenceCABundle ReferenceKind = "CA bundle"
)

// +k8s:deepcopy-gen=false

// Reference is how a cache refers to an entry of the Shoot's spec.resources, and so to a Secret.
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
