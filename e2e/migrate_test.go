//go:build e2e

package e2e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// migrate proves that the control plane of a shoot moves to another seed without anybody in the shoot noticing.
func migrate() scenario {
	var (
		before, nodes string
		oldNamespace  types.UID
		pulls         *stream
	)
	return newScenario("migrate",
		step{"alpha and beta are cached, and images of alpha are pulled", func(ctx context.Context, p *scenarioRun) {
			cached(alpha, beta)(ctx, p)
			before, nodes = p.Identities(ctx, p.suite.shoot), stateOfCaches(ctx, p)
			oldNamespace = namespaceUID(ctx, p)
			pulls = pullContinuously(ctx, p, alpha)
		}},
		step{"its control plane leaves the seed", func(ctx context.Context, p *scenarioRun) {
			saved := p.Extension(ctx).Status.State
			shoot, err := operate.ShootWithCaches(alpha, beta)
			p.Check(err)
			p.Check(p.suite.testbed.Gardenlet.Migrate(ctx, shoot))
			p.Gone(ctx, p.suite.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shootNamespace}})
			p.Unchanged(ctx, p.suite.shoot, before)
			p.Evidence("migrated: namespace gone, every object still in the shoot")

			p.Check(p.suite.testbed.Gardenlet.Restore(ctx, shoot))
			if namespaceUID(ctx, p) == oldNamespace {
				p.Fatalf("the namespace is the old one: nothing has moved")
			}
			if restored := p.Extension(ctx).Status.State; !equality.Semantic.DeepEqual(restored, saved) {
				p.Fatalf("the Extension's state was %v and is %v", saved, restored)
			}
			p.Evidence("restored in a fresh namespace, with the Extension's state")
		}},
		step{"nothing in the shoot was created anew or touched", func(ctx context.Context, p *scenarioRun) {
			p.Unchanged(ctx, p.suite.shoot, before)
			if now := stateOfCaches(ctx, p); now != nodes {
				p.Fatalf("caches or nodes changed:\nbefore:\n%s\nafter:\n%s", nodes, now)
			}
			p.Evidence("StatefulSets, Services, volumes, pods and hosts.toml untouched")
		}},
		step{"every pull in the meantime came through the cache, in time", func(ctx context.Context, p *scenarioRun) {
			pulls.end(p, alpha, maxPull)
			for _, img := range pulls.images {
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			p.Evidence("all of them by the cache")
		}},
		step{"caches change again at the next reconciliation", func(ctx context.Context, p *scenarioRun) {
			p.Configure(ctx, nil, operate.CacheOf(alpha), operate.CacheOf(beta))
			p.Unchanged(ctx, p.suite.shoot, before)
		}},
	)
}

// namespaceUID identifies the shoot's namespace of the seed.
func namespaceUID(ctx context.Context, p *scenarioRun) types.UID {
	p.Helper()
	namespace := &corev1.Namespace{}
	p.Check(p.suite.seed.Get(ctx, client.ObjectKey{Name: shootNamespace}, namespace))
	return namespace.UID
}
