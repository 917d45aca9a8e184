//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Upstreams that only their caches can reach. Nodes cannot: the addresses are reserved for
// documentation (RFC 5737, RFC 3849).
const (
	// byAddress is stored at gamma.
	byAddress = "192.0.2.7"
	// inCluster is a Service of the shoot.
	inCluster = "[2001:db8::7]:5000"
)

// proxied proves that a cache with a proxy reaches its upstream through it, unless the upstream is
// in the shoot or in noProxy.
func proxied() rig.Scenario {
	var proxy *upstream.Proxy
	refer := rig.References{}
	return rig.New("proxy",
		rig.Prove("caches have a proxy", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))
			proxy = startProxy(ctx, p)
			refer["ca"] = p.Secret(ctx, map[string][]byte{"bundle.crt": p.Session.Testbed.CA.PEM()}, nil)
			address := rig.ExposeInCluster(ctx, p, rig.Gamma)
			p.Configure(ctx, refer, proxiedCaches(proxy.URL(), address)...)
		}),

		rig.Prove("an http upstream is reached through it", func(ctx context.Context, p *rig.Run) {
			img := pullThroughCache(ctx, p, rig.Alpha, rig.Alpha)
			through := proxyLog(ctx, p, proxy).Repository(img.Repository)
			if direct := p.Requests(ctx, img); len(through) != len(direct) {
				p.Fatalf("%s got %d requests, %d of them through the proxy", rig.Alpha, len(direct), len(through))
			}
			p.Evidence("httpProxy: %d of %d requests through the proxy", len(through), len(through))
		}),

		rig.Prove("an https upstream is reached through it", func(ctx context.Context, p *rig.Run) {
			img := pullThroughCache(ctx, p, rig.Beta, rig.Beta)
			tunnels := proxyLog(ctx, p, proxy).Filter(func(r accesslog.Record) bool {
				return r.Method == http.MethodConnect && r.Host == rig.Beta+":443" && r.Status == http.StatusOK
			})
			if len(tunnels) == 0 {
				p.Fatalf("the proxy opened no tunnel to %s", rig.Beta)
			}
			proveFrom(ctx, p, img, proxyAddress(ctx, p, proxy))
			p.Evidence("httpsProxy: every request from the proxy's address, %d tunnels", len(tunnels))
		}),

		rig.Prove("an upstream of noProxy is reached directly", func(ctx context.Context, p *rig.Run) {
			pullThroughCache(ctx, p, byAddress, rig.Gamma)
			provePassedBy(ctx, p, proxy, rig.Gamma)
			p.Evidence("noProxy: direct, %s", byAddress)
		}),

		rig.Prove("an upstream in the shoot's service network is reached directly", func(ctx context.Context, p *rig.Run) {
			pullThroughCache(ctx, p, inCluster, rig.Gamma)
			provePassedBy(ctx, p, proxy, p.RemoteHost(ctx, inCluster))
			p.Evidence("in-cluster upstream: direct, %s", inCluster)
		}),
	)
}

// proxiedCaches all have the proxy. beta is reached over HTTPS, gamma is in noProxy, and inCluster
// has an address in the service network. The names of the last two are addresses.
func proxiedCaches(proxy, serviceAddress string) []v1alpha3.RegistryCache {
	by := func(host, remoteURL string) v1alpha3.RegistryCache {
		return v1alpha3.RegistryCache{
			Upstream: host, RemoteURL: ptr.To(remoteURL), Proxy: &v1alpha3.Proxy{HTTPProxy: ptr.To(proxy), HTTPSProxy: ptr.To(proxy)},
		}
	}
	caches := []v1alpha3.RegistryCache{
		by(rig.Alpha, "http://"+rig.Alpha), by(rig.Beta, "https://"+rig.Beta), by(byAddress, "http://"+rig.Gamma), by(inCluster, "http://"+serviceAddress),
	}
	caches[0].Proxy.HTTPSProxy = nil
	caches[1].Proxy.HTTPProxy, caches[1].CABundleSecretReferenceName = nil, ptr.To("ca")
	caches[2].Proxy.NoProxy = ptr.To("example.test," + rig.Gamma)
	return caches
}

// startProxy starts the proxy, until the scenario ends.
func startProxy(ctx context.Context, p *rig.Run) *upstream.Proxy {
	p.Helper()
	proxy, err := p.Session.Testbed.StartProxy(ctx)
	p.Check(err)
	p.Afterwards(ctx, proxy.Remove)
	return proxy
}

// pullThroughCache pulls a new image of an upstream that is served by the host, and proves that the
// cache fetched it.
func pullThroughCache(ctx context.Context, p *rig.Run, upstream, host string) rig.Pushed {
	p.Helper()
	img := p.Push(ctx, host)
	pulled := img
	pulled.Host = upstream
	p.Pull(ctx, p.Worker(0), pulled)
	p.FetchedOnce(ctx, img, accesslog.AskerCache)
	return img
}

// proxyLog returns the proxy's requests, without those of the testbed.
func proxyLog(ctx context.Context, p *rig.Run, proxy *upstream.Proxy) accesslog.Records {
	p.Helper()
	records, err := proxy.Log(ctx)
	p.Check(err)
	return records.Pulls()
}

// proxyAddress returns the IP address of the proxy.
func proxyAddress(ctx context.Context, p *rig.Run, proxy *upstream.Proxy) string {
	p.Helper()
	return rig.AddressOf(ctx, p, proxy.Host())
}

// proveFrom proves that all requests for the image came from the IP address.
func proveFrom(ctx context.Context, p *rig.Run, img rig.Pushed, address string) {
	p.Helper()
	for _, record := range p.Requests(ctx, img) {
		if !strings.HasPrefix(record.RemoteAddr, address+":") {
			p.Fatalf("%s got a request from %s, want only from the proxy at %s", img.Host, record.RemoteAddr, address)
		}
	}
}

// provePassedBy proves that the proxy got no request for the host.
func provePassedBy(ctx context.Context, p *rig.Run, proxy *upstream.Proxy, host string) {
	p.Helper()
	for _, record := range proxyLog(ctx, p, proxy) {
		if record.Host == host || strings.HasPrefix(record.Host, host+":") {
			p.Fatalf("the proxy got a request for %s: %s %s", host, record.Method, record.Host)
		}
	}
}
