package nodeconfig

import (
	"fmt"
	"strings"
)

// Registry is one upstream registry with a cache, as a node sees it.
type Registry struct {
	// Upstream is the registry as in image references: <host>[:<port>]. It is the name of the
	// directory below CertsDir.
	Upstream string
	// Endpoint is the URL of the cache, such as "http://10.4.246.205:5000".
	Endpoint string
	// UpstreamURL is the URL of the upstream, to which containerd falls back.
	UpstreamURL string
	// EndpointCA is the PEM CA bundle for the cache, used if Endpoint is an https URL. It may be
	// empty.
	EndpointCA []byte
	// UpstreamCA is the PEM CA bundle for the upstream, in addition to public CAs, used if UpstreamURL
	// is an https URL. It may be empty.
	UpstreamCA []byte
}

// Argument returns the argument of the script for r: <upstream_host>,<endpoint>,<upstream_url>, and
// with CA bundles ,<endpoint_ca>[,<upstream_ca>]. A CA bundle is the base64 of the DER of each
// certificate, separated by dots. Anything in it that is not a PEM certificate is omitted.
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

// ParseArgument is the inverse of Registry.Argument. It also parses arguments of versions without
// CA bundles. It returns the certificates as canonical PEM, with nothing in between.
func ParseArgument(argument string) (Registry, error) {
	parts := strings.Split(argument, ",")
	if len(parts) < 3 || len(parts) > 5 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Registry{}, fmt.Errorf("argument %q is not <upstream_host>,<endpoint>,<upstream_url>[,<endpoint_ca>[,<upstream_ca>]]", argument)
	}
	registry := Registry{Upstream: parts[0], Endpoint: parts[1], UpstreamURL: parts[2]}
	for i, ca := range []*[]byte{&registry.EndpointCA, &registry.UpstreamCA} {
		if len(parts) <= 3+i {
			break
		}
		var err error
		if *ca, err = decodeCertificates(parts[3+i]); err != nil {
			return Registry{}, fmt.Errorf("argument for %s: %w", registry.Upstream, err)
		}
	}
	return registry, nil
}
