//go:build e2e

package e2e

import (
	"context"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// foreignService proves that Services of somebody else that look like those of caches neither hold a reconciliation up nor
// get the pulls.
func foreignService() features.Feature {
	var others []*corev1.Service
	return scenario("foreign-service",
		step{"beta is cached, and there are foreign Services with the label", func(ctx context.Context, p *proof) {
			cached(beta)(ctx, p)
			others = []*corev1.Service{
				putForeignService(ctx, p, alpha, map[string]string{
					v1alpha3.AnnotationUpstream: alpha, v1alpha3.AnnotationRemoteURL: "http://" + alpha,
				}),
				putForeignService(ctx, p, beta, nil),
				putForeignService(ctx, p, "foreign.example.test", nil),
			}
		}},
		step{"a cache for alpha is added all the same", func(ctx context.Context, p *proof) {
			p.Reconcile(ctx, alpha, beta)
			p.AwaitCaches(ctx, alpha, beta)
			p.AwaitMirrors(ctx, alpha, beta)
			p.Evidence("%d foreign Services: reconciled", len(others))
		}},
		step{"nodes pull through our caches and not from the foreign Services", func(ctx context.Context, p *proof) {
			for upstream, endpoint := range p.Endpoints(ctx) {
				at, err := url.Parse(endpoint)
				p.Check(err)
				for _, other := range others {
					if at.Hostname() == other.Spec.ClusterIP {
						p.Errorf("the endpoint of %s is that of the foreign Service %s", upstream, other.Name)
					}
				}
			}
			img := p.Push(ctx, alpha)
			p.Pull(ctx, p.Worker(0), img)
			p.Evidence("alpha: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}},
		step{"the foreign Services are untouched", func(ctx context.Context, p *proof) {
			for _, other := range others {
				now := &corev1.Service{}
				p.Check(suite.shoot.Get(ctx, client.ObjectKeyFromObject(other), now))
				if now.UID != other.UID || now.ResourceVersion != other.ResourceVersion {
					p.Errorf("Service %s was touched", other.Name)
				}
			}
		}},
	)
}

// putForeignService creates a Service with our label for the host, until the scenario ends.
func putForeignService(ctx context.Context, p *proof, host string, annotations map[string]string) *corev1.Service {
	p.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, GenerateName: "e2e-foreign-",
			Labels: map[string]string{upstreamHostLabel: host}, Annotations: annotations,
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5000}}},
	}
	p.Check(suite.shoot.Create(ctx, service))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(suite.shoot.Delete(ctx, service)) })
	return service
}
