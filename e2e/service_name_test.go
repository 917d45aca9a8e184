//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

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
	moved := func(name string, to v1alpha3.RegistryCache) step {
		return step{"alpha's Service becomes " + name + ", and the nodes follow", func(ctx context.Context, p *proof) {
			before := endpoint
			p.Configure(ctx, nil, to)
			if endpoint = p.EndpointOfOnly(ctx, name); endpoint == before {
				p.Fatalf("the endpoint was %s before: this would prove nothing", endpoint)
			}
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, alpha); strings.Contains(hosts, before) {
					p.Errorf("hosts.toml on %s still names %s:\n%s", worker.Name(), before, hosts)
				}
			}
			p.Evidence("%s: %s", name, p.CachedEverywhere(ctx, alpha))
		}}
	}
	return scenario("service-name",
		step{"alpha is cached, and a direct pull is measured", func(ctx context.Context, p *proof) {
			cached(alpha)(ctx, p)
			endpoint = p.EndpointOfOnly(ctx, derived)
			direct = p.TimedPull(ctx, p.Worker(0), p.Push(ctx, gamma))
			pulls = pullContinuously(ctx, p, alpha)
		}},
		moved(given, named),
		moved(derived, kind.CacheOf(alpha)),
		step{"no pull failed or took long", func(_ context.Context, p *proof) {
			// Each of its requests waits for the Service that is gone, until the node has the other one.
			pulls.end(p, alpha, direct+maxPull)
		}},
	)
}

// EndpointOfOnly proves that the Service of this name is the only one of a cache, and the endpoint of alpha, and returns that.
func (p *proof) EndpointOfOnly(ctx context.Context, name string) string {
	p.Helper()
	services, endpoint := p.Services(ctx), p.Endpoints(ctx)[alpha]
	service := services[alpha]
	if len(services) != 1 || service.Name != name {
		p.Fatalf("want only Service %s, there are %d, that of %s is %q", name, len(services), alpha, service.Name)
	}
	if want := "http://" + service.Spec.ClusterIP + ":5000"; endpoint != want {
		p.Fatalf("the endpoint is %s, that of Service %s is %s", endpoint, name, want)
	}
	return endpoint
}
