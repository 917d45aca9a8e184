package kind

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// UpstreamOptions returns the options that Up starts an upstream with. The host name must be unique
// on the machine, see upstream.Host. Callers may add options before they call StartUpstream.
func (t *Testbed) UpstreamOptions(host string) upstream.Options {
	return upstream.Options{
		Prefix:  t.Prefix,
		Host:    host,
		Network: cluster.NetworkName,
		CA:      t.CA,
		Image:   t.Images[upstream.Binary().Name],
	}
}

// StartUpstream starts another upstream, see upstream.Start. It runs until StopUpstream or Down.
func (t *Testbed) StartUpstream(ctx context.Context, o upstream.Options) (*upstream.Registry, error) {
	registry, err := upstream.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	t.Upstreams.Add(registry)
	return registry, nil
}

// StopUpstream removes an upstream and the images in it.
func (t *Testbed) StopUpstream(ctx context.Context, registry *upstream.Registry) error {
	if err := registry.Remove(ctx); err != nil {
		return fmt.Errorf("stop upstream: %w", err)
	}
	t.Upstreams.Remove(registry.Host())
	return nil
}

// StartProxy starts an HTTP proxy for the upstreams. Its host name is proxy.upstream.test for the
// default prefix. It runs until its Remove or Down.
func (t *Testbed) StartProxy(ctx context.Context) (*upstream.Proxy, error) {
	return upstream.StartProxy(ctx, t.UpstreamOptions(upstream.Host(t.Prefix, "proxy")))
}

// Hosts returns the host names of the upstreams with these names in the configuration.
func (t *Testbed) Hosts(names []string) []string {
	hosts := make([]string, 0, len(names))
	for _, name := range names {
		hosts = append(hosts, upstream.Host(t.Prefix, name))
	}
	return hosts
}

// CachedUpstreams returns the host names of the upstreams that have a cache in the Shoot after Up.
// It is empty if the configuration has a manifest, which then decides that.
func (t *Testbed) CachedUpstreams() []string { return t.Hosts(t.Config.Cached()) }
