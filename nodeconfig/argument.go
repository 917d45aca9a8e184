package nodeconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
)

// Registry contains what a node needs to pull from one upstream registry through its cache.
type Registry struct {
	// Upstream is <host>[:<port>] as in image references, and the name of a directory in CertsDir.
	Upstream string
	// Endpoint is the URL of the cache, such as "http://10.4.246.205:5000".
	Endpoint string
	// UpstreamURL is the URL of the upstream, to which containerd falls back.
	UpstreamURL string
	// EndpointCA is the PEM CA bundle for an https Endpoint. It may be empty.
	EndpointCA []byte
	// UpstreamCA is the PEM bundle of additional CAs for an https UpstreamURL. It may be empty.
	UpstreamCA []byte
}

// Argument returns the argument of the script for r:
// <upstream_host>,<endpoint>,<upstream_url>[,<endpoint_ca>[,<upstream_ca>]]. A CA bundle is a list
// of certificates, as DER in base64, separated by dots. Anything but PEM certificates is omitted.
func (r Registry) Argument() string {
	parts := []string{r.Upstream, r.Endpoint, r.UpstreamURL}
	endpointCA, upstreamCA := encodeCertificates(r.EndpointCA), encodeCertificates(r.UpstreamCA)
	switch {
	case upstreamCA != "":
		parts = append(parts, endpointCA, upstreamCA)
	case endpointCA != "":
		parts = append(parts, endpointCA)
	}
	return strings.Join(parts, ",")
}

// ParseArgument is the inverse of Registry.Argument. It returns the certificates as canonical PEM,
// without text between them.
func ParseArgument(argument string) (Registry, error) {
	parts := strings.Split(argument, ",")
	if len(parts) < 3 || len(parts) > 5 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Registry{}, fmt.Errorf("argument %q is not <upstream_host>,<endpoint>,<upstream_url>[,<endpoint_ca>[,<upstream_ca>]]", argument)
	}
	parts = append(parts, "", "") // CA bundles may be missing
	endpointCA, err := decodeCertificates(parts[3])
	if err != nil {
		return Registry{}, fmt.Errorf("endpoint CA in the argument for %s: %w", parts[0], err)
	}
	upstreamCA, err := decodeCertificates(parts[4])
	if err != nil {
		return Registry{}, fmt.Errorf("upstream CA in the argument for %s: %w", parts[0], err)
	}
	return Registry{Upstream: parts[0], Endpoint: parts[1], UpstreamURL: parts[2], EndpointCA: endpointCA, UpstreamCA: upstreamCA}, nil
}

const certificateBlock = "CERTIFICATE"

// certificates returns the certificates in text as DER, except those that x509.CertPool would skip.
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

func encodeCertificates(text []byte) string {
	found := certificates(text)
	words := make([]string, 0, len(found))
	for _, der := range found {
		words = append(words, base64.StdEncoding.EncodeToString(der))
	}
	return strings.Join(words, ".")
}

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
