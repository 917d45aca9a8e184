package server

import (
	"crypto/tls"
	"fmt"
	"os"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// expiring returns the settings of a server that shows the certificate of a fault.ExpiredTLS, as long as the file of faults has
// one, to each client that says which host it wants. The server's own certificate is shown otherwise. Connections that are open
// stay as they are.
func expiring(faults, key string) *tls.Config {
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

// withKey puts the certificate and the key in the file together.
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
