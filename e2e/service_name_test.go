//go:build e2e

package e2e

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// serviceName proves that serviceNameSuffix sets the name of a cache's Service, that nodes use the
// new Service without a failed or slow pull, and that the previous Service keeps its address for at
// least one more reconciliation.
func serviceName() rig.Scenario {
	var pulls *stream
	var endpoint string
	const derived, given = "registry-alpha-upstream-test", "registry-e2e"
	named := cachetest.Cache(rig.Alpha)
	named.ServiceNameSuffix = ptr.To("e2e")
	moved := func(from, name string, to v1alpha3.RegistryCache) rig.Step {
		return rig.Prove("alpha's Service becomes "+name+", and the nodes follow", func(ctx context.Context, p *rig.Run) {
			before := endpoint
			p.Configure(ctx, nil, to, cachetest.Cache(rig.Beta))
			if endpoint = endpointOfService(ctx, p, rig.Alpha, name); endpoint == before {
				p.Fatalf("the endpoint was already %s, so this proves nothing", endpoint)
			}
			former := serviceNamed(ctx, p, from)
			if address := "http://" + former.Spec.ClusterIP + ":5000"; address != before {
				p.Fatalf("the nodes use %s until they are reconfigured, but the previous Service %s is at %s", before, from, address)
			}
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, rig.Alpha); strings.Contains(hosts, before) {
					p.Errorf("hosts.toml on %s still names %s:\n%s", worker.Name(), before, hosts)
				}
			}
			p.Configure(ctx, nil, to, cachetest.Cache(rig.Beta))
			if now := serviceNamed(ctx, p, from); now.Spec.ClusterIP != former.Spec.ClusterIP {
				p.Fatalf("the previous Service %s was at %s, is at %s", from, former.Spec.ClusterIP, now.Spec.ClusterIP)
			}
			endpointOfService(ctx, p, rig.Alpha, name)
			p.Evidence("%s, and still %s after the next reconciliation: %s", name, from, cachedEverywhere(ctx, p, rig.Alpha))
		})
	}
	return rig.New("service-name",
		rig.Prove("alpha and beta are cached", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			endpoint = endpointOfService(ctx, p, rig.Alpha, derived)
			pulls = pullContinuously(ctx, p, rig.Alpha)
		}),

		moved(derived, given, named),
		moved(given, derived, cachetest.Cache(rig.Alpha)),
		rig.Prove("no pull failed or was slow", func(_ context.Context, p *rig.Run) {
			pulls.end(p, rig.Alpha, rig.MaxPull)
		}),
	)
}

// endpointOfService proves that the upstream's cache has a Service of this name, and that the
// Service's cluster IP is the cache's endpoint. It returns this endpoint.
func endpointOfService(ctx context.Context, p *rig.Run, host, name string) string {
	p.Helper()
	service, endpoint := serviceNamed(ctx, p, name), p.Endpoints(ctx)[host]
	if want := "http://" + service.Spec.ClusterIP + ":5000"; service.Annotations[v1alpha3.AnnotationUpstream] != host || endpoint != want {
		p.Fatalf("Service %s is for %q, the endpoint of %s is %s, want %s", name, service.Annotations[v1alpha3.AnnotationUpstream], host, endpoint, want)
	}
	return endpoint
}

// serviceNamed returns the Service of this name in the shoot's kube-system.
func serviceNamed(ctx context.Context, p *rig.Run, name string) *corev1.Service {
	p.Helper()
	service := &corev1.Service{}
	p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, service))
	return service
}
