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
	lifetime = 90 * 24 * time.Hour // of the expired certificate
	ended    = time.Hour           // how long ago it expired
)

// Expired returns a copy of a server certificate, in PEM, that expired an hour ago: same key, names
// and usage, signed by the same CA. It does not need the private key. A certificate of another CA
// is an error.
func (c *CA) Expired(server []byte) ([]byte, error) {
	certificate, err := parse(server)
	if err != nil {
		return nil, err
	}
	issuer, err := parse(c.PEM())
	if err != nil {
		return nil, fmt.Errorf("parse the CA's certificate: %w", err)
	}
	if err := certificate.CheckSignatureFrom(issuer); err != nil {
		return nil, fmt.Errorf("not signed by the testbed's CA, and the testbed has the key of no other CA: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128)) // at most 20 bytes, RFC 5280, 4.1.2.2
	if err != nil {
		return nil, err
	}
	certificate.SerialNumber = serial
	certificate.NotAfter = time.Now().Add(-ended)
	certificate.NotBefore = certificate.NotAfter.Add(-lifetime)
	expired, err := x509.CreateCertificate(rand.Reader, certificate, issuer, certificate.PublicKey, c.ca.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("reissue it: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: expired}), nil
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM data")
	}
	return x509.ParseCertificate(block.Bytes)
}
