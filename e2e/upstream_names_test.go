//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// hardNames are upstreams that do not exist: their images can only come through their caches, which
// fetch from gamma.
var hardNames = []string{
	"a.b-c.upstream.test", "a-b.c.upstream.test", "a-name-with-sixty-characters-is-quite-long.sub.upstream.test",
	"port.upstream.test:5000", "port-5000.upstream.test", "[2001:db8::7]:5000",
}

// upstreamNames proves that upstreams with similar or long names, ports and IP addresses have
// caches of their own, which share no object.
func upstreamNames() rig.Scenario {
	const reconciledWithin, pulledWithin = 45 * time.Second, 40 * time.Second // eight pods start at once
	caches := []v1alpha3.RegistryCache{cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta)}
	for _, name := range hardNames {
		cache := httpCache(name)
		cache.RemoteURL = ptr.To("http://" + rig.Gamma)
		caches = append(caches, cache)
	}
	var versions []string
	return rig.New("upstream-names",
		rig.Prove("each upstream has a cache with an endpoint of its own", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			start := time.Now()
			p.Check(rig.ReconcileConfig(ctx, p, caches...))
			took := time.Since(start)
			if took > reconciledWithin {
				p.Fatalf("the reconciliation took %s, want at most %s", rig.Seconds(took), reconciledWithin)
			}
			p.AwaitCaches(ctx, rig.Upstreams(caches)...)
			p.AwaitMirrors(ctx, rig.Upstreams(caches)...)
			at := map[string]string{}
			for upstream, endpoint := range p.Endpoints(ctx) {
				if other, taken := at[endpoint]; taken {
					p.Fatalf("%s and %s are both at %s", other, upstream, endpoint)
				}
				at[endpoint] = upstream
			}
			if len(at) != len(caches) {
				p.Fatalf("%d of %d caches have an endpoint: %v", len(at), len(caches), at)
			}
			versions = cacheVersions(ctx, p)
			p.Evidence("reconciled in %s, %d endpoints", rig.Seconds(took), len(at))
		}),

		rig.Prove("an image is pulled by each name, through its cache", func(ctx context.Context, p *rig.Run) {
			for _, name := range hardNames {
				img := p.Push(ctx, rig.Gamma)
				reference := name + strings.TrimPrefix(img.Reference(), rig.Gamma)
				p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, reference+" is pulled", pulledWithin, func(ctx context.Context) (bool, string, error) {
					_, err := rig.TimedPullOf(ctx, p.Worker(0), reference)
					return err == nil, fmt.Sprint(err), nil // the cache might not be ready yet
				}))
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			p.Evidence("%d names pulled", len(hardNames))
		}),

		rig.Prove("after that no object of a cache is written", func(ctx context.Context, p *rig.Run) {
			// Two caches that share an object would overwrite it again and again.
			if now := cacheVersions(ctx, p); !slices.Equal(now, versions) {
				p.Fatalf("objects were written: before %v, now %v", versions, now)
			}
			p.Evidence("%d objects unchanged", len(versions))
		}),
	)
}

// cacheVersions returns, for each object of the caches, a version that changes with the spec: the
// resource version of Services, which have no status here, and the generation of the others.
func cacheVersions(ctx context.Context, p *rig.Run) (versions []string) {
	p.Helper()
	services, sets, policies := &corev1.ServiceList{}, &appsv1.StatefulSetList{}, &networkingv1.NetworkPolicyList{}
	for _, list := range []client.ObjectList{services, sets, policies} {
		p.Check(p.Session.Shoot.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}))
	}
	for _, service := range services.Items {
		versions = append(versions, "Service "+service.Name+" "+service.ResourceVersion)
	}
	for _, set := range sets.Items {
		versions = append(versions, fmt.Sprintf("StatefulSet %s %d", set.Name, set.Generation))
	}
	for _, policy := range policies.Items {
		versions = append(versions, fmt.Sprintf("NetworkPolicy %s %d", policy.Name, policy.Generation))
	}
	// If the name of a cache's Service has changed, the previous Service is kept for an hour.
	if want := 2 + len(hardNames); len(services.Items) < want || len(sets.Items) != want {
		p.Fatalf("%d Services and %d StatefulSets, want %d of each: %v", len(services.Items), len(sets.Items), want, versions)
	}
	slices.Sort(versions)
	return versions
}
