//go:build e2e

package e2e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// migrate proves that the control plane of a shoot can be migrated and restored, as for a move to
// another seed, and that nothing in the shoot changes.
func migrate() rig.Scenario {
	var (
		before, nodes string
		oldNamespace  types.UID
		pulls         *stream
	)
	return rig.New("migrate",
		rig.Prove("alpha and beta are cached, and images of alpha are pulled", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			before, nodes = p.Identities(ctx, p.Session.Shoot), p.StateOfCaches(ctx, rig.Alpha, rig.Beta)
			oldNamespace = namespaceUID(ctx, p)
			pulls = pullContinuously(ctx, p, rig.Alpha)
		}),

		rig.Prove("the shoot's control plane leaves the seed", func(ctx context.Context, p *rig.Run) {
			saved := p.Extension(ctx).Status.State
			shoot, err := cachetest.Shoot(rig.Alpha, rig.Beta)
			p.Check(err)
			p.Check(p.Session.Testbed.Gardenlet.Migrate(ctx, shoot))
			p.Gone(ctx, p.Session.Seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rig.ShootNamespace}})
			p.Unchanged(ctx, p.Session.Shoot, before)
			p.Evidence("migrated: namespace gone, every object still in the shoot")

			p.Check(p.Session.Testbed.Gardenlet.Restore(ctx, shoot))
			if namespaceUID(ctx, p) == oldNamespace {
				p.Fatalf("the namespace was not recreated, so this proves nothing")
			}
			if restored := p.Extension(ctx).Status.State; !equality.Semantic.DeepEqual(restored, saved) {
				p.Fatalf("the Extension's state was %v and is %v", saved, restored)
			}
			p.Evidence("restored in a fresh namespace, with the Extension's state")
		}),

		rig.Prove("nothing in the shoot was recreated or changed", func(ctx context.Context, p *rig.Run) {
			p.Unchanged(ctx, p.Session.Shoot, before)
			if now := p.StateOfCaches(ctx, rig.Alpha, rig.Beta); now != nodes {
				p.Fatalf("caches or nodes changed:\nbefore:\n%s\nafter:\n%s", nodes, now)
			}
			p.Evidence("StatefulSets, Services, volumes, pods and hosts.toml unchanged")
		}),

		rig.Prove("every pull during the migration came through the cache, in time", func(ctx context.Context, p *rig.Run) {
			pulls.end(p, rig.Alpha, rig.MaxPull)
			for _, img := range pulls.images {
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			p.Evidence("all pulls through the cache")
		}),

		rig.Prove("the next reconciliation recreates nothing in the shoot", func(ctx context.Context, p *rig.Run) {
			p.Configure(ctx, nil, cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta))
			p.Unchanged(ctx, p.Session.Shoot, before)
		}),
	)
}

// namespaceUID returns the UID of the shoot's namespace in the seed.
func namespaceUID(ctx context.Context, p *rig.Run) types.UID {
	p.Helper()
	namespace := &corev1.Namespace{}
	p.Check(p.Session.Seed.Get(ctx, client.ObjectKey{Name: rig.ShootNamespace}, namespace))
	return namespace.UID
}
