package registry

import (
	"crypto/x509"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustedCAs returns the CAs of the system (SSL_CERT_FILE and SSL_CERT_DIR, as crypto/x509 reads
// them) and the public ones that are built in.
//
// Package x509roots/fallback would not do: its list counts only where the system has none, and a
// private CA of the upstream, in SSL_CERT_DIR, counts for one. Blobs are often at a host with a
// public certificate.
func trustedCAs() (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("reading the CAs of the system (SSL_CERT_FILE, SSL_CERT_DIR): %w", err)
	}
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("reading a built-in CA: %w", err)
		}
		if root.Constraint == nil {
			pool.AddCert(certificate)
		} else {
			pool.AddCertWithConstraint(certificate, root.Constraint)
		}
	}
	return pool, nil
}
