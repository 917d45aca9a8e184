// Package certificate creates two kinds of CAs. The first is the CA of a testbed: it signs the
// certificates of the upstream registries. It is stored in the state folder, and the nodes trust
// it. The second is a private CA, which no client trusts.
//
// Callers decide which servers use a certificate and which nodes trust the CA.
package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardener/gardener/pkg/utils/secrets"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

const (
	certificateFile = "ca.crt"
	keyFile         = "ca.key"
)

// CA signs server certificates of the testbed, or of an upstream with a private CA.
type CA struct{ ca *secrets.Certificate }

// Pair is a certificate and its private key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// Ensure loads the CA from dir/ca.crt and dir/ca.key. If a file is missing, it creates a new CA,
// which is valid for ten years, and dir if needed. Only the owner can read the key file. If the
// files cannot be read or do not match, Ensure returns an error and does not change them.
func Ensure(dir string) (*CA, error) {
	loaded, err := Load(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return create(dir)
	case err != nil:
		return nil, fmt.Errorf("%w; remove %s to create a new one", err, dir)
	}
	return loaded, nil
}

// Load loads the CA from dir. If a file is missing, the error wraps fs.ErrNotExist.
func Load(dir string) (_ *CA, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("load the testbed's CA: %w", err)
		}
	}()
	key, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	certificate, err := os.ReadFile(filepath.Join(dir, certificateFile))
	if err != nil {
		return nil, err
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return nil, fmt.Errorf("%s and %s in %s: %w", certificateFile, keyFile, dir, err)
	}
	ca, err := secrets.LoadCertificate("testbed", key, certificate)
	if err != nil {
		return nil, fmt.Errorf("%s and %s in %s: %w", certificateFile, keyFile, dir, err)
	}
	return &CA{ca: ca}, nil
}

// PEM returns the CA's certificate, which clients have to trust.
func (c *CA) PEM() []byte { return c.ca.CertificatePEM }

// Server issues a server certificate for the host names. The first one becomes the common name.
func (c *CA) Server(host string, more ...string) (Pair, error) {
	config := secrets.CertificateSecretConfig{
		Name: host, CommonName: host, DNSNames: append([]string{host}, more...),
		CertType: secrets.ServerCert, SigningCA: c.ca,
	}
	issued, err := config.GenerateCertificate()
	if err != nil {
		return Pair{}, fmt.Errorf("issue certificate for %s: %w", host, err)
	}
	return Pair{Certificate: issued.CertificatePEM, Key: issued.PrivateKeyPEM}, nil
}

// New creates a CA, for example a private CA. New neither stores it nor makes a client trust it.
func New(commonName string) (*CA, error) {
	config := secrets.CertificateSecretConfig{Name: "private", CommonName: commonName, CertType: secrets.CACert}
	ca, err := config.GenerateCertificate()
	if err != nil {
		return nil, fmt.Errorf("create CA %q: %w", commonName, err)
	}
	return &CA{ca: ca}, nil
}

// create creates a CA. It stores the key first, so that no certificate is ever without its key.
func create(dir string) (*CA, error) {
	created, err := New("registry-cache testbed")
	if err != nil {
		return nil, err
	}
	ca := created.ca
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of the testbed's CA: %w", err)
	}
	if err := file.Replace(filepath.Join(dir, keyFile), ca.PrivateKeyPEM, 0o600); err != nil {
		return nil, err
	}
	return created, file.Replace(filepath.Join(dir, certificateFile), ca.CertificatePEM, 0o644)
}
