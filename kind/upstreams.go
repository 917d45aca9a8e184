package kind

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// UpstreamOptions are what Up starts its upstreams with, for this host name; see upstream.Host for one that no other
// testbed has. A caller may add to them before it hands them to StartUpstream.
func (t *Testbed) UpstreamOptions(host string) upstream.Options {
	return upstream.Options{
		Prefix:  t.Prefix,
		Host:    host,
		Network: cluster.NetworkName,
		CA:      t.CA,
		Image:   t.Images[upstream.Binary().Name],
	}
}

// StartUpstream starts a further upstream, see upstream.Start. From then on Upstream and Diagnose know it. It lives until
// StopUpstream or Down.
func (t *Testbed) StartUpstream(ctx context.Context, o upstream.Options) (*upstream.Registry, error) {
	registry, err := upstream.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	t.Upstreams.Add(registry)
	return registry, nil
}

// StopUpstream removes an upstream with what was pushed to it.
func (t *Testbed) StopUpstream(ctx context.Context, registry *upstream.Registry) error {
	if err := registry.Remove(ctx); err != nil {
		return fmt.Errorf("stop upstream: %w", err)
	}
	t.Upstreams.Remove(registry.Host())
	return nil
}

// StartProxy starts an HTTP proxy beside the upstreams, proxy.upstream.test for the default prefix. It lives until its
// Remove or Down.
func (t *Testbed) StartProxy(ctx context.Context) (*upstream.Proxy, error) {
	return upstream.StartProxy(ctx, t.UpstreamOptions(upstream.Host(t.Prefix, "proxy")))
}

// upstreamHosts are the hosts of all upstreams.
func (t *Testbed) UpstreamHosts() []string {
	var hosts []string
	for _, registry := range t.Upstreams.All() {
		hosts = append(hosts, registry.Host())
	}
	return hosts
}
