//go:build e2e

package e2e

import (
	"context"
	"strings"

	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
)

// serviceName proves that serviceNameSuffix names the Service of a cache, and that a change of it takes all nodes to the new
// Service without a pull that fails or takes long.
func serviceName() features.Feature {
	var pulls *stream
	var endpoint string
	named := func(suffix string) v1alpha3.RegistryCache {
		cache := kind.CacheOf(alpha)
		cache.ServiceNameSuffix = &suffix
		return cache
	}
	return scenario("service-name",
		step{"alpha's Service has the name that it is given", func(ctx context.Context, p *proof) {
			configured(named("one"))(ctx, p)
			endpoint = p.EndpointOfOnly(ctx, "registry-one")
			p.Evidence("registry-one: %s", p.CachedEverywhere(ctx, alpha))
		}},
		step{"the name changes and goes, and pulls go on", func(ctx context.Context, p *proof) {
			pulls = pullContinuously(ctx, p, alpha)
			for _, change := range []struct {
				to   v1alpha3.RegistryCache
				name string
			}{{named("two"), "registry-two"}, {kind.CacheOf(alpha), "registry-alpha-upstream-test"}} {
				before := endpoint
				p.Configure(ctx, nil, change.to)
				if endpoint = p.EndpointOfOnly(ctx, change.name); endpoint == before {
					p.Fatalf("%s has the endpoint of the Service before it, %s: this would prove nothing", change.name, endpoint)
				}
				for _, worker := range p.Workers() {
					if hosts := p.Hosts(ctx, worker, alpha); strings.Contains(hosts, before) {
						p.Errorf("hosts.toml on %s still names %s:\n%s", worker.Name(), before, hosts)
					}
				}
			}
			pulls.end(p, alpha, maxPull)
		}},
		step{"pulls on both nodes go through the cache", func(ctx context.Context, p *proof) {
			p.Evidence("registry-alpha-upstream-test: %s", p.CachedEverywhere(ctx, alpha))
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
