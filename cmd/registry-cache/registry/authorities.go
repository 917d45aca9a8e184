package registry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustAuthorities makes the transport trust the authorities of the system and, besides them, the public ones that are
// built in: the list of Mozilla, as Go publishes it.
//
// The package fallback would not do: its list counts only where the system has none, and the private authority of an
// upstream, which comes by SSL_CERT_DIR, counts for one. Blobs often lie at a host with a public certificate.
func trustAuthorities(transport *http.Transport) error {
	pool, err := authorities()
	if err != nil {
		return err
	}
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	transport.TLSClientConfig.RootCAs = pool
	return nil
}

// authorities returns those of the system (SSL_CERT_FILE and SSL_CERT_DIR, as crypto/x509 reads them) and those that are
// built in.
func authorities() (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate authorities of the system (SSL_CERT_FILE, SSL_CERT_DIR): %w", err)
	}
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("cannot read a built-in certificate authority: %w", err)
		}
		if root.Constraint == nil {
			pool.AddCert(certificate)
		} else {
			pool.AddCertWithConstraint(certificate, root.Constraint)
		}
	}
	return pool, nil
}
