//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Upstreams that nodes cannot reach directly: the addresses are reserved for documentation
// (RFC 5737, RFC 3849). Their caches have a remoteURL with another address.
const (
	// byAddress is an upstream whose remoteURL is the URL of gamma.
	byAddress = "192.0.2.7"
	// inCluster is an upstream whose remoteURL is a Service of the shoot.
	inCluster = "[2001:db8::7]:5000"
)

// proxied proves that a cache with a proxy reaches its upstream through the proxy, unless the
// upstream is in the shoot or in noProxy.
func proxied() rig.Scenario {
	var proxy *upstream.Proxy
	refer := rig.References{}
	return rig.New("proxy",
		rig.Prove("caches have a proxy", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))
			proxy = startProxy(ctx, p)
			refer["ca"] = p.Secret(ctx, map[string][]byte{"bundle.crt": p.Session.Testbed.CA.PEM()}, nil)
			address := exposeInCluster(ctx, p, rig.Gamma)
			p.Configure(ctx, refer, proxiedCaches(proxy.URL(), address)...)
		}),

		rig.Prove("an http upstream is reached through the proxy", func(ctx context.Context, p *rig.Run) {
			img := pullThroughCache(ctx, p, rig.Alpha, rig.Alpha)
			through := proxyLog(ctx, p, proxy).Repository(img.Repository)
			if direct := p.Requests(ctx, img); len(through) != len(direct) {
				p.Fatalf("%s got %d requests, %d of them through the proxy", rig.Alpha, len(direct), len(through))
			}
			p.Evidence("httpProxy: %d of %d requests through the proxy", len(through), len(through))
		}),

		rig.Prove("an https upstream is reached through the proxy", func(ctx context.Context, p *rig.Run) {
			img := pullThroughCache(ctx, p, rig.Beta, rig.Beta)
			tunnels := proxyLog(ctx, p, proxy).Filter(func(r accesslog.Record) bool {
				return r.Method == http.MethodConnect && r.Host == rig.Beta+":443" && r.Status == http.StatusOK
			})
			if len(tunnels) == 0 {
				p.Fatalf("the proxy opened no tunnel to %s", rig.Beta)
			}
			proveFrom(ctx, p, img, addressOf(ctx, p, proxy.Host()))
			p.Evidence("httpsProxy: every request from the proxy's address, %d tunnels", len(tunnels))
		}),

		rig.Prove("an upstream of noProxy is reached directly", func(ctx context.Context, p *rig.Run) {
			pullThroughCache(ctx, p, byAddress, rig.Gamma)
			proveNotProxied(ctx, p, proxy, rig.Gamma)
			p.Evidence("noProxy: direct, %s", byAddress)
		}),

		rig.Prove("an upstream in the shoot's service network is reached directly", func(ctx context.Context, p *rig.Run) {
			pullThroughCache(ctx, p, inCluster, rig.Gamma)
			proveNotProxied(ctx, p, proxy, remoteHost(ctx, p, inCluster))
			p.Evidence("in-cluster upstream: direct, %s", inCluster)
		}),
	)
}

// proxiedCaches returns caches with the proxy. beta is reached over HTTPS. The cache of byAddress
// fetches from gamma, which is in noProxy. The cache of inCluster fetches from the service address.
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

// startProxy starts and returns the proxy, which runs until the scenario ends.
func startProxy(ctx context.Context, p *rig.Run) *upstream.Proxy {
	p.Helper()
	proxy, err := p.Session.Testbed.StartProxy(ctx)
	p.Check(err)
	p.Afterwards(ctx, proxy.Remove)
	return proxy
}

// pullThroughCache pushes a new image to the host from which the upstream's cache fetches. Then it
// pulls the image from the upstream, and proves that the cache fetched the image.
func pullThroughCache(ctx context.Context, p *rig.Run, upstream, host string) rig.Pushed {
	p.Helper()
	img := p.Push(ctx, host)
	pulled := img
	pulled.Host = upstream
	p.TimedPull(ctx, p.Worker(0), pulled)
	p.FetchedOnce(ctx, img, accesslog.AskerCache)
	return img
}

// proxyLog returns the requests to the proxy, without those of the testbed.
func proxyLog(ctx context.Context, p *rig.Run, proxy *upstream.Proxy) accesslog.Records {
	p.Helper()
	records, err := proxy.Log(ctx)
	p.Check(err)
	return records.Pulls()
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

// proveNotProxied proves that the proxy received no request for the host.
func proveNotProxied(ctx context.Context, p *rig.Run, proxy *upstream.Proxy, host string) {
	p.Helper()
	for _, record := range proxyLog(ctx, p, proxy) {
		if record.Host == host || strings.HasPrefix(record.Host, host+":") {
			p.Fatalf("the proxy got a request for %s: %s %s", host, record.Method, record.Host)
		}
	}
}

// exposeInCluster gives an upstream of the testbed an address in the shoot's service network until
// the scenario ends, and returns this address.
func exposeInCluster(ctx context.Context, p *rig.Run, host string) string {
	p.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "e2e-upstream-"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	p.Check(p.Session.Shoot.Create(ctx, service))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, service)) })
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name, Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{addressOf(ctx, p, host)}}},
	}
	p.Check(p.Session.Shoot.Create(ctx, slice))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, slice)) })
	return service.Spec.ClusterIP
}

// addressOf returns the IPv4 address to which a node resolves the name.
func addressOf(ctx context.Context, p *rig.Run, host string) string {
	p.Helper()
	out, err := p.Worker(0).Exec(ctx, "getent", "ahostsv4", host)
	p.Check(err)
	address, _, _ := strings.Cut(out, " ")
	return address
}

// remoteHost returns the host from which the cache of the upstream fetches, according to the
// Extension's status.
func remoteHost(ctx context.Context, p *rig.Run, upstream string) string {
	p.Helper()
	for _, cache := range p.Status(ctx).Caches {
		if cache.Upstream == upstream {
			remote, err := url.Parse(cache.RemoteURL)
			p.Check(err)
			return remote.Host
		}
	}
	p.Fatalf("the Extension's status has no cache for %s", upstream)
	return ""
}
