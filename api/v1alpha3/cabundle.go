package v1alpha3

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateCABundle checks the Secret that RegistryCache.CABundleSecretReferenceName refers to. It
// must be immutable and contain only the key "bundle.crt", with at least one PEM certificate and at
// most MaxCABundleSize bytes. Text between the certificates is allowed, but other PEM blocks are
// not. Errors are reported at path.
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

// ValidateCABundles checks the total size of the CA bundles, which are results of CABundle by
// upstream. If it exceeds MaxCABundlesSize, ValidateCABundles returns one error, at the first cache
// whose bundle does not fit.
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

// certificates returns the certificates of a bundle. It decodes PEM strictly, because package pem
// skips blocks that it cannot decode, and x509.CertPool skips certificates with headers.
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
