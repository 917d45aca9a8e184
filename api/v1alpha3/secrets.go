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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// KeyUsername is the key of the user name in a Secret with the credentials for an upstream.
	KeyUsername = "username"
	// KeyPassword is the key of the password beside it.
	KeyPassword = "password"
	// KeyCABundle is the key of a Secret with the certificates of an upstream's authorities.
	KeyCABundle = "bundle.crt"
	// MaxCABundleSize is the largest CA bundle in bytes: it becomes part of files on every node.
	MaxCABundleSize = 64 * 1024
	// MaxCABundlesSize is the largest sum in bytes of what CABundle returns for all caches; a Secret that two caches refer to
	// counts twice. All of them are arguments in one line of a systemd unit, which may have 1 MiB
	// (systemd.syntax(7)), and in one Secret for gardener-node-agent, which may have 1 MiB too.
	MaxCABundlesSize = 256 * 1024
)

// ValidateCredentials checks the Secret that RegistryCache.SecretReferenceName leads to: immutable, with the keys
// "username" and "password" and no others, neither of them empty. Any byte may be in them. Mistakes are reported at path
// and repeat nothing of the content.
func ValidateCredentials(secret *corev1.Secret, path *field.Path) field.ErrorList {
	errs := validateSecret(secret, path, KeyUsername, KeyPassword)
	for _, key := range []string{KeyUsername, KeyPassword} {
		if value, ok := secret.Data[key]; ok && len(value) == 0 {
			errs = append(errs, invalidSecret(secret, path, fmt.Sprintf("has nothing under the key %q", key)))
		}
	}
	return errs
}

// ValidateCABundle checks the Secret that RegistryCache.CABundleSecretReferenceName leads to: immutable, with the key
// "bundle.crt" and no other, which holds certificates in PEM, at least one, and no more than MaxCABundleSize bytes.
// Text between the certificates is allowed, any other PEM block is not. Mistakes are reported at path.
func ValidateCABundle(secret *corev1.Secret, path *field.Path) field.ErrorList {
	errs := validateSecret(secret, path, KeyCABundle)
	bundle, ok := secret.Data[KeyCABundle]
	if !ok {
		return errs
	}
	if len(bundle) > MaxCABundleSize {
		return append(errs, invalidSecret(secret, path,
			fmt.Sprintf("has %d bytes under the key %q, more than %d", len(bundle), KeyCABundle, MaxCABundleSize)))
	}
	if _, err := certificates(bundle); err != nil {
		errs = append(errs, invalidSecret(secret, path, fmt.Sprintf("must hold certificates in PEM under the key %q: %v", KeyCABundle, err)))
	}
	return errs
}

// CABundle returns the certificates of a Secret that ValidateCABundle accepts, in PEM of one form: no text between them,
// lines of 64 characters that end in a line feed. It returns nil for any other Secret.
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

// ValidateCABundles checks the sum of the CA bundles of a config, which are given by upstream in the form that CABundle
// returns. There is at most one mistake, at the first cache with which they are more than MaxCABundlesSize.
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
		"the CA bundles of all caches together have %d bytes, more than %d: leave out authorities that no upstream needs",
		sum, MaxCABundlesSize))}
}

// certificates decodes PEM strictly: package pem skips blocks that it cannot read, and x509.CertPool those with headers.
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
		return nil, errors.New("there is none")
	case begins != len(blocks):
		return nil, fmt.Errorf("of %d blocks only %d can be read", begins, len(blocks))
	}
	return blocks, nil
}

// validateSecret checks what is demanded of every referenced Secret: an immutable one is replaced by another, so that a
// reconciliation sees a rotation, and what was checked stays what it is.
func validateSecret(secret *corev1.Secret, path *field.Path, keys ...string) field.ErrorList {
	var errs field.ErrorList
	if secret.Immutable == nil || !*secret.Immutable {
		errs = append(errs, invalidSecret(secret, path, "must be immutable (immutable: true); rotate by a reference to a new Secret"))
	}
	for _, key := range keys {
		if _, ok := secret.Data[key]; !ok {
			errs = append(errs, invalidSecret(secret, path, fmt.Sprintf("lacks the key %q", key)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		if !slices.Contains(keys, key) {
			errs = append(errs, invalidSecret(secret, path,
				fmt.Sprintf("must have no key besides %s, it has %q", strings.Join(keys, ", "), key)))
		}
	}
	return errs
}

func invalidSecret(secret *corev1.Secret, path *field.Path, reason string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the Secret %s %s", qualified(secret.Namespace, secret.Name), reason))
}

// qualified returns the name of a Secret with its namespace, if that is known: offline it may not be.
func qualified(namespace, name string) string {
	return strings.TrimPrefix(namespace+"/"+name, "/")
}
