//go:build e2e

package e2e

import (
	"context"
	"slices"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/cachetest/original"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// takeoverHTTP proves that this extension takes over a cache that serves HTTP from the original.
func takeoverHTTP() rig.Scenario { return takeoverOf("takeover-http", cachetest.Cache(rig.Alpha)) }

// takeoverHTTPS proves the same for HTTPS: nodes trust the original's CA throughout.
func takeoverHTTPS() rig.Scenario { return takeoverOf("takeover-https", cachetest.Cache(rig.Beta)) }

// takeoverHA proves the same for two replicas.
func takeoverHA() rig.Scenario {
	cache := cachetest.Cache(rig.Beta)
	cache.HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
	return takeoverOf("takeover-ha", cache)
}

// takeoverOf proves that a running cache is taken over without a failed pull.
func takeoverOf(name string, cache v1alpha3.RegistryCache) rig.Scenario {
	t := &takeover{caches: []v1alpha3.RegistryCache{cache}}
	return rig.New(name, slices.Concat(
		[]rig.Step{t.configured(), t.watchPulls(), t.swap()}, t.takenOver(), t.settled(t.hosts()...))...).Within(takeoverTimeout)
}

// takeoverBack proves that a landscape can return to the original: its ManagedResources are
// applied, and its caches have the same volumes and addresses.
func takeoverBack() rig.Scenario {
	t := &takeover{caches: rig.PlainCaches(rig.Beta)}
	return rig.New("takeover-back", slices.Concat([]rig.Step{t.configured(), t.swap()}, t.takenOver(), []rig.Step{
		t.watchPulls(),
		rig.Prove("the original replaces this extension again, and its objects are applied", func(ctx context.Context, p *rig.Run) {
			t.startOriginal(ctx, p)
			p.Check(t.reconcile(ctx, p, t.caches...))
			p.AwaitCaches(ctx, t.hosts()...)
			p.AwaitMirrors(ctx, t.hosts()...)
			for _, name := range []string{v1alpha3.ManagedResourceServices, v1alpha3.ManagedResourceCaches} {
				resource := &resourcesv1alpha1.ManagedResource{}
				p.Check(p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: rig.ShootNamespace, Name: name}, resource))
				p.Check(health.CheckManagedResourceApplied(resource))
			}
			t.proveKept(ctx, p)
			p.Evidence("back to the original: ManagedResources apply; StatefulSets, claims, volumes and Services have the same UIDs")
		}),
		rig.Prove("no pull failed, and none was much slower than before", func(ctx context.Context, p *rig.Run) {
			t.pulls.awaitMore(ctx, p, 5)
			t.pulls.end(p, t.limit)
		}),
		// gardener-resource-manager deletes the policies of this extension before it creates the
		// original's.
		rig.Prove("since the original's NetworkPolicy exists, nodes have been able to reach each cache", func(_ context.Context, p *rig.Run) {
			t.reachable.proveSince(p, original.NetworkPolicy, t.hosts()...)
		}),
		rig.Prove("nodes have only the original's files", func(ctx context.Context, p *rig.Run) { t.proveOriginal(ctx, p) }),
	})...).Within(takeoverTimeout)
}
