package kind

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// reachUpstreams lets this process pull charts from the testbed's upstreams. Their names resolve
// only in the network of the containers, and the testbed's CA signs their certificates. It changes
// go-containerregistry's default transport, which gardenlet's OCI client uses (gardener v1.150.0,
// pkg/utils/oci), so it is only for the process of the permanent gardenlet.
func (t *Testbed) reachUpstreams() error {
	transport, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return fmt.Errorf("the default transport of go-containerregistry is a %T, want *http.Transport", remote.DefaultTransport)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return fmt.Errorf("read the CAs of this machine: %w", err)
	}
	roots.AppendCertsFromPEM(t.CA.PEM())
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		running, err := upstream.List(ctx, t.Prefix) // not remembered: `up` can replace a container
		if err != nil {
			return nil, fmt.Errorf("find the upstream %s: %w", host, err)
		}
		for _, registry := range running {
			if ips := registry.Addresses(); registry.Host() == host && len(ips) > 0 {
				address = net.JoinHostPort(ips[0].String(), port)
			}
		}
		return dial(ctx, network, address)
	}
	return nil
}
