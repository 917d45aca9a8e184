//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
)

// serviceName proves that serviceNameSuffix names the Service of a cache, and that with another name all nodes move to the
// other Service without a pull that fails or takes long.
func serviceName() features.Feature {
	var pulls *stream
	var endpoint string
	var direct time.Duration
	const derived, given = "registry-alpha-upstream-test", "registry-e2e"
	named := kind.CacheOf(alpha)
	named.ServiceNameSuffix = ptr.To("e2e")
	moved := func(from, name string, to v1alpha3.RegistryCache) step {
		return step{"alpha's Service becomes " + name + ", and the nodes follow", func(ctx context.Context, p *proof) {
			before := endpoint
			p.Configure(ctx, nil, to, kind.CacheOf(beta))
			if endpoint = p.EndpointOfService(ctx, alpha, name); endpoint == before {
				p.Fatalf("the endpoint was %s before: this would prove nothing", endpoint)
			}
			p.Gone(ctx, suite.shoot, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: from}})
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, alpha); strings.Contains(hosts, before) {
					p.Errorf("hosts.toml on %s still names %s:\n%s", worker.Name(), before, hosts)
				}
			}
			p.Evidence("%s: %s", name, p.CachedEverywhere(ctx, alpha))
		}}
	}
	return scenario("service-name",
		step{"alpha and beta are cached, and a direct pull is measured", func(ctx context.Context, p *proof) {
			cached(alpha, beta)(ctx, p)
			endpoint = p.EndpointOfService(ctx, alpha, derived)
			direct = p.TimedPull(ctx, p.Worker(0), p.Push(ctx, gamma))
			pulls = pullContinuously(ctx, p, alpha)
		}},
		moved(derived, given, named),
		moved(given, derived, kind.CacheOf(alpha)),
		step{"no pull failed or took long", func(_ context.Context, p *proof) {
			// Each of its requests waits for the Service that is gone, until the node has the other one.
			pulls.end(p, alpha, direct+maxPull)
		}},
	)
}

// EndpointOfService proves that the cache of the upstream has the Service of this name, and that the Service's cluster IP is
// its endpoint, and returns that.
func (p *proof) EndpointOfService(ctx context.Context, host, name string) string {
	p.Helper()
	service, endpoint := p.Services(ctx)[host], p.Endpoints(ctx)[host]
	if want := "http://" + service.Spec.ClusterIP + ":5000"; service.Name != name || endpoint != want {
		p.Fatalf("%s has Service %q and endpoint %s, want Service %s and endpoint %s", host, service.Name, endpoint, name, want)
	}
	return endpoint
}
