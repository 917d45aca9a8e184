package nodeconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
)

const certificateBlock = "CERTIFICATE"

// certificates returns the DER of each certificate that containerd would read from text
// (x509.CertPool.AppendCertsFromPEM).
func certificates(text []byte) (found [][]byte) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return found
		}
		if block.Type != certificateBlock || len(block.Headers) > 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, block.Bytes)
		}
	}
}

// canonical returns only the certificates in text, as PEM. PEM consists of base64 lines and
// markers, so it cannot end the TOML string that contains it.
func canonical(text []byte) []byte {
	var encoded []byte
	for _, der := range certificates(text) {
		encoded = append(encoded, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})...)
	}
	return encoded
}

func encodeCertificates(text []byte) string {
	found := certificates(text)
	words := make([]string, 0, len(found))
	for _, der := range found {
		words = append(words, base64.StdEncoding.EncodeToString(der))
	}
	return strings.Join(words, ".")
}

// decodeCertificates is the inverse of encodeCertificates.
func decodeCertificates(word string) ([]byte, error) {
	if word == "" {
		return nil, nil
	}
	var text []byte
	for i, encoded := range strings.Split(word, ".") {
		der, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("certificate %d is not valid base64: %w", i, err)
		}
		if len(der) == 0 {
			return nil, fmt.Errorf("certificate %d is empty", i)
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})...)
	}
	return text, nil
}
