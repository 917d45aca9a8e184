package server

import (
	"crypto/tls"
	"fmt"
	"os"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// tlsConfig returns the TLS settings of a server. While the faults file has a fault.ExpiredTLS, a
// client that sends a server name gets that fault's certificate. Otherwise it gets the server's
// own. Open connections are not affected.
func tlsConfig(faults, key string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			all, err := readFaults(faults)
			if err != nil {
				return nil, err
			}
			for _, f := range all {
				if f.Kind == spec.ExpiredTLS {
					return withKey(f.Certificate, key)
				}
			}
			return nil, nil // the server's own
		},
	}
}

// withKey combines a certificate with the key in the file.
func withKey(certificate, file string) (*tls.Certificate, error) {
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	pair, err := tls.X509KeyPair([]byte(certificate), key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the fault: %w", err)
	}
	return &pair, nil
}
