//go:build e2e

package e2e

import (
	"context"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// unmanagedService proves that Services that have the extension's label, but were not created by
// the extension, do not block a reconciliation, and that nodes do not pull from them.
func unmanagedService() rig.Scenario {
	var others []*corev1.Service
	return rig.New("unmanaged-service",
		rig.Prove("beta is cached, and unmanaged Services have the label", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Beta)(ctx, p)
			others = []*corev1.Service{
				putUnmanagedService(ctx, p, rig.Alpha, map[string]string{v1alpha3.AnnotationUpstream: rig.Alpha, v1alpha3.AnnotationRemoteURL: "http://" + rig.Alpha}),
				putUnmanagedService(ctx, p, rig.Beta, nil),
				putUnmanagedService(ctx, p, "unmanaged.example.test", nil),
			}
		}),

		rig.Prove("a cache for alpha is added", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx, rig.Alpha, rig.Beta)
			p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			p.Evidence("%d unmanaged Services: reconciled", len(others))
		}),

		rig.Prove("nodes pull through the caches and not from the unmanaged Services", func(ctx context.Context, p *rig.Run) {
			for upstream, endpoint := range p.Endpoints(ctx) {
				at, err := url.Parse(endpoint)
				p.Check(err)
				for _, other := range others {
					if at.Hostname() == other.Spec.ClusterIP {
						p.Errorf("the endpoint of %s is that of the unmanaged Service %s", upstream, other.Name)
					}
				}
			}
			img := p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("alpha: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),

		rig.Prove("the unmanaged Services are unchanged", func(ctx context.Context, p *rig.Run) {
			for _, other := range others {
				now := &corev1.Service{}
				p.Check(p.Session.Shoot.Get(ctx, client.ObjectKeyFromObject(other), now))
				if now.UID != other.UID || now.ResourceVersion != other.ResourceVersion {
					p.Errorf("Service %s has changed", other.Name)
				}
			}
		}),
	)
}

// putUnmanagedService creates and returns a Service with the extension's label for the host. The
// Service is deleted when the scenario ends.
func putUnmanagedService(ctx context.Context, p *rig.Run, host string, annotations map[string]string) *corev1.Service {
	p.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, GenerateName: "e2e-unmanaged-",
			Labels: map[string]string{v1alpha3.LabelUpstreamHost: host}, Annotations: annotations,
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5000}}},
	}
	p.Check(p.Session.Shoot.Create(ctx, service))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, service)) })
	return service
}
