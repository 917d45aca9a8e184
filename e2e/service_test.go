//go:build e2e

package e2e

import (
	"context"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// exposeInCluster gives an upstream of the testbed an address in the shoot's service network, until the scenario ends, and
// returns it.
func exposeInCluster(ctx context.Context, p *scenarioRun, host string) string {
	p.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "e2e-upstream-"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	p.Check(p.suite.shoot.Create(ctx, service))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(p.suite.shoot.Delete(ctx, service)) })
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name, Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{addressOf(ctx, p, host)}}},
	}
	p.Check(p.suite.shoot.Create(ctx, slice))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(p.suite.shoot.Delete(ctx, slice)) })
	return service.Spec.ClusterIP
}

// addressOf returns the IPv4 address that a node resolves the name to.
func addressOf(ctx context.Context, p *scenarioRun, host string) string {
	p.Helper()
	out, err := p.Worker(0).Exec(ctx, "getent", "ahostsv4", host)
	p.Check(err)
	address, _, _ := strings.Cut(out, " ")
	return address
}

// RemoteHost returns the host that the cache of the upstream fetches from, as the Extension's status has it.
func (p *scenarioRun) RemoteHost(ctx context.Context, upstream string) string {
	p.Helper()
	extension := p.Extension(ctx)
	if extension.Status.ProviderStatus == nil {
		p.Fatalf("the Extension has no providerStatus")
	}
	status, err := v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw)
	p.Check(err)
	for _, cache := range status.Caches {
		if cache.Upstream == upstream {
			remote, err := url.Parse(cache.RemoteURL)
			p.Check(err)
			return remote.Host
		}
	}
	p.Fatalf("the Extension's status has no cache for %s", upstream)
	return ""
}
