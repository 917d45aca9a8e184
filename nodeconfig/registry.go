package nodeconfig

import (
	"fmt"
	"strings"
)

// Registry is one upstream registry with a cache, as a node sees it.
type Registry struct {
	// Upstream is the registry as image references name it: <host>[:<port>]. It names the directory below CertsDir.
	Upstream string
	// Endpoint is the URL of the cache, such as "http://10.4.246.205:5000".
	Endpoint string
	// UpstreamURL is the URL of the upstream, which containerd falls back to.
	UpstreamURL string
	// EndpointCA are the certificates in PEM that the cache is verified by, if Endpoint is an https URL. It may be empty.
	EndpointCA []byte
	// UpstreamCA are the certificates in PEM that the upstream is verified by besides the well-known ones, if UpstreamURL
	// is an https URL. It may be empty.
	UpstreamCA []byte
}

// Argument returns the argument of the script for r: <upstream_host>,<endpoint>,<upstream_url>, and if there are
// certificates ,<endpoint_ca>[,<upstream_ca>]. Each is the DER of the certificates in base64, with dots between them.
// What is no certificate in PEM is left out of them.
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

// ParseArgument is the inverse of Registry.Argument, also for the arguments of versions that knew no certificates.
// The certificates are in canonical PEM: nothing stands between them.
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
