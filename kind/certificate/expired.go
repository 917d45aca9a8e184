package certificate

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	// lifetime is that of an expired certificate, ended how long ago its end is.
	lifetime = 90 * 24 * time.Hour
	ended    = time.Hour
)

// Expired returns a server certificate, in PEM, as it would be if nobody had renewed it: for the same key, names and usage, issued
// by the authority, and ended an hour ago. The private key is not needed. One of another authority is an error.
func (a *Authority) Expired(server []byte) ([]byte, error) {
	certificate, err := parse(server)
	if err != nil {
		return nil, err
	}
	issuer, err := parse(a.PEM())
	if err != nil {
		return nil, fmt.Errorf("the authority's own: %w", err)
	}
	if err := certificate.CheckSignatureFrom(issuer); err != nil {
		return nil, fmt.Errorf("it is not of the testbed's authority, and the key of another one is kept nowhere: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128)) // at most 20 bytes, RFC 5280, 4.1.2.2
	if err != nil {
		return nil, err
	}
	certificate.SerialNumber = serial
	certificate.NotAfter = time.Now().Add(-ended)
	certificate.NotBefore = certificate.NotAfter.Add(-lifetime)
	over, err := x509.CreateCertificate(rand.Reader, certificate, issuer, certificate.PublicKey, a.ca.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("issue it anew: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: over}), nil
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM in it")
	}
	return x509.ParseCertificate(block.Bytes)
}
