//go:build e2e

package rig

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// reachTimeout is enough for a cache that started before its node's network: it retries five
	// seconds after a failure.
	reachTimeout = 30 * time.Second
	// nowhere is the path of a manifest that no upstream has.
	nowhere = "/v2/e2e/nothing/manifests/sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

// AwaitUpstreams waits until the caches reach their upstreams. On a machine that has just started
// they are ready earlier: without kube-proxy's rules a DNS lookup fails, and a failure is
// remembered for five seconds. Until then nodes pull directly.
//
// A cache answers 404 for a digest that its upstream does not have, and 500 if the upstream does
// not answer. For a tag it answers 404 in both cases.
func (p *Run) AwaitUpstreams(ctx context.Context, hosts ...string) {
	p.Helper()
	endpoints := p.Endpoints(ctx)
	for _, host := range hosts {
		p.Await(ctx, "the cache of "+host+" reaches it", reachTimeout, func(ctx context.Context) (bool, string, error) {
			out, err := p.Worker(0).Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null",
				"--write-out", "%{http_code}", endpoints[host]+nowhere)
			status := strings.TrimSpace(out)
			return err == nil && status == strconv.Itoa(http.StatusNotFound), fmt.Sprintf("HTTP status %s (%v)", status, err), nil
		})
	}
}

// ExposeInCluster gives an upstream of the testbed an address in the shoot's service network, until
// the scenario ends, and returns it.
func ExposeInCluster(ctx context.Context, p *Run, host string) string {
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
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{AddressOf(ctx, p, host)}}},
	}
	p.Check(p.Session.Shoot.Create(ctx, slice))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, slice)) })
	return service.Spec.ClusterIP
}

// AddressOf returns the IPv4 address that a node resolves the name to.
func AddressOf(ctx context.Context, p *Run, host string) string {
	p.Helper()
	out, err := p.Worker(0).Exec(ctx, "getent", "ahostsv4", host)
	p.Check(err)
	address, _, _ := strings.Cut(out, " ")
	return address
}

// RemoteHost returns the host that the cache of the upstream fetches from, as the Extension's
// status has it.
func (p *Run) RemoteHost(ctx context.Context, upstream string) string {
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
