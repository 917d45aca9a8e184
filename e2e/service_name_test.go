//go:build e2e

package e2e

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
)

// serviceName proves that serviceNameSuffix names the Service of a cache, and that with another name all nodes move to the
// other Service without a pull that fails or takes long: the old one goes with the next reconciliation.
func serviceName() features.Feature {
	var pulls *stream
	var endpoint string
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
			former := p.ServiceNamed(ctx, from)
			if address := "http://" + former.Spec.ClusterIP + ":5000"; address != before {
				p.Fatalf("the nodes were told of %s, and Service %s, which they may use until they know of the other one, is at %s", before, from, address)
			}
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, alpha); strings.Contains(hosts, before) {
					p.Errorf("hosts.toml on %s still names %s:\n%s", worker.Name(), before, hosts)
				}
			}
			p.Configure(ctx, nil, to, kind.CacheOf(beta))
			p.Gone(ctx, suite.shoot, former)
			p.EndpointOfService(ctx, alpha, name)
			p.Evidence("%s, beside %s for one reconciliation: %s", name, from, p.CachedEverywhere(ctx, alpha))
		}}
	}
	return scenario("service-name",
		step{"alpha and beta are cached", func(ctx context.Context, p *proof) {
			cached(alpha, beta)(ctx, p)
			endpoint = p.EndpointOfService(ctx, alpha, derived)
			pulls = pullContinuously(ctx, p, alpha)
		}},
		moved(derived, given, named),
		moved(given, derived, kind.CacheOf(alpha)),
		step{"no pull failed or took long", func(_ context.Context, p *proof) {
			pulls.end(p, alpha, maxPull)
		}},
	)
}

// EndpointOfService proves that the cache of the upstream has a Service of this name, and that the Service's cluster IP is
// its endpoint, and returns that.
func (p *proof) EndpointOfService(ctx context.Context, host, name string) string {
	p.Helper()
	service, endpoint := p.ServiceNamed(ctx, name), p.Endpoints(ctx)[host]
	if want := "http://" + service.Spec.ClusterIP + ":5000"; service.Annotations[v1alpha3.AnnotationUpstream] != host || endpoint != want {
		p.Fatalf("Service %s is for %q, the endpoint of %s is %s, want %s",
			name, service.Annotations[v1alpha3.AnnotationUpstream], host, endpoint, want)
	}
	return endpoint
}

// ServiceNamed returns the Service of this name in the shoot's kube-system.
func (p *proof) ServiceNamed(ctx context.Context, name string) *corev1.Service {
	p.Helper()
	service := &corev1.Service{}
	p.Check(suite.shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, service))
	return service
}
