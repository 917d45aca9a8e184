package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener/gardener/pkg/utils/secrets"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

const (
	certificateFile = "ca.crt"
	keyFile         = "ca.key"
	// renewal is how long before its end an authority is replaced by a new one.
	renewal = 30 * 24 * time.Hour
)

// Authority signs certificates of the testbed.
type Authority struct{ ca *secrets.Certificate }

// Pair is a certificate and its private key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// Ensure loads the authority from dir/ca.crt and dir/ca.key, or makes one when there is none, when only one of the
// files is there (its creation was cut off), or when it ends within 30 days. The folder is created if need be; the key
// file is readable by its owner only. Files that cannot be read or do not belong together are an error and are left as
// they are.
func Ensure(dir string) (*Authority, error) {
	authority, err := Load(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return create(dir)
	case err != nil:
		return nil, fmt.Errorf("%w; remove %s to have a new one made", err, dir)
	case time.Until(authority.ca.Certificate.NotAfter) < renewal:
		return create(dir)
	}
	return authority, nil
}

// Load is Ensure for whoever only reads: where a file is not there, the error is an fs.ErrNotExist, and one that ends soon is returned.
func Load(dir string) (*Authority, error) {
	authority, err := load(dir)
	if err != nil {
		return nil, fmt.Errorf("load the testbed's certificate authority: %w", err)
	}
	return authority, nil
}

// PEM is the authority's certificate, what clients have to trust.
func (a *Authority) PEM() []byte { return a.ca.CertificatePEM }

// Pool trusts the authority and nothing else.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.PEM())
	return pool
}

// Server issues a new server certificate for the host names; the first is its common name.
func (a *Authority) Server(host string, more ...string) (Pair, error) {
	config := secrets.CertificateSecretConfig{
		Name: host, CommonName: host, DNSNames: append([]string{host}, more...),
		CertType: secrets.ServerCert, SigningCA: a.ca,
	}
	issued, err := config.GenerateCertificate()
	if err != nil {
		return Pair{}, fmt.Errorf("issue certificate for %s: %w", host, err)
	}
	return Pair{Certificate: issued.CertificatePEM, Key: issued.PrivateKeyPEM}, nil
}

func load(dir string) (*Authority, error) {
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
	return &Authority{ca: ca}, nil
}

// New makes an authority that nobody trusts and that is kept nowhere: that of a company, say, in front of its own registry.
func New(commonName string) (*Authority, error) {
	config := secrets.CertificateSecretConfig{Name: "private", CommonName: commonName, CertType: secrets.CACert}
	ca, err := config.GenerateCertificate()
	if err != nil {
		return nil, fmt.Errorf("make certificate authority %q: %w", commonName, err)
	}
	return &Authority{ca: ca}, nil
}

// create writes the key first: a certificate without its key would look complete to nobody.
func create(dir string) (*Authority, error) {
	authority, err := New("registry-cache testbed")
	if err != nil {
		return nil, err
	}
	ca := authority.ca
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of the testbed's certificate authority: %w", err)
	}
	for _, name := range []string{certificateFile, keyFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("replace the testbed's certificate authority: %w", err)
		}
	}
	if err := file.Replace(filepath.Join(dir, keyFile), ca.PrivateKeyPEM, 0o600); err != nil {
		return nil, err
	}
	if err := file.Replace(filepath.Join(dir, certificateFile), ca.CertificatePEM, 0o644); err != nil {
		return nil, err
	}
	return authority, nil
}
