//go:build e2e

package nodeless

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// twoShoots proves that shoots on one seed are independent: a change to one shoot affects no object
// of the other, and no file or unit for the other's nodes. No image is pulled, because there are no
// nodes.
func twoShoots() rig.Scenario {
	var (
		second  *rig.Session
		before  string
		daemons *rig.Recording
	)
	// in returns the Run of the current step, but with the session of the second shoot.
	in := func(p *rig.Run) *rig.Run {
		now := *p
		now.Session = second
		return &now
	}
	return rig.New("two-shoots",
		rig.Prove("the first shoot has caches for alpha and beta", func(ctx context.Context, p *rig.Run) {
			cached(rig.Alpha, rig.Beta)(ctx, p)
			before = everything(ctx, p)
			daemons = p.Record(ctx, p.Session.Shoot, appsv1.SchemeGroupVersion.WithResource("daemonsets"), metav1.NamespaceSystem)
		}),

		rig.Prove("a second shoot gets its own caches for the same upstreams", func(ctx context.Context, p *rig.Run) {
			var err error
			second, err = shared.session(ctx, p.Scenario, "second")
			p.Check(err)
			cached(rig.Alpha, rig.Beta)(ctx, in(p))
			proveSame(ctx, p, before)
			p.Evidence("both have caches for alpha and beta")
		}),

		rig.Prove("alpha is removed from the second shoot: the first still has it", func(ctx context.Context, p *rig.Run) {
			recorded := p.Record(ctx, second.Shoot, appsv1.SchemeGroupVersion.WithResource("daemonsets"), metav1.NamespaceSystem)
			cached(rig.Beta)(ctx, in(p))
			if len(cleanersIn(ctx, p, second.Shoot, recorded)) == 0 {
				p.Fatalf("the second shoot had no cleaner, so this proves nothing about the first")
			}
			proveSame(ctx, p, before)
			if names := cleanersIn(ctx, p, p.Session.Shoot, daemons); len(names) > 0 {
				p.Fatalf("the first shoot had a cleaner: %v", names)
			}
			p.Evidence("alpha removed from the second only")
		}),

		rig.Prove("the second shoot is deleted: nothing of the first changes", func(ctx context.Context, p *rig.Run) {
			p.Check(second.Testbed.Gardenlet.Delete(ctx, gardenlet.NewShoot("second")))
			p.Gone(ctx, p.Session.Seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.Namespace()}})
			in(p).NothingDeployed(ctx)
			proveSame(ctx, p, before)
			p.Evidence("second deleted, first unchanged")
		}),
	)
}

// cleanersIn returns the events of cleaners in the cluster since the recording began.
func cleanersIn(ctx context.Context, p *rig.Run, cluster rig.Access, daemons *rig.Recording) []string {
	p.Helper()
	fence := rig.DaemonSetFence()
	fence.SetNamespace(metav1.NamespaceSystem)
	var found []string
	for _, event := range rig.RaiseFence(ctx, p, daemons, cluster, fence) {
		if name := event.Object.GetName(); strings.Contains(name, "cleaner") {
			found = append(found, string(event.Type)+" "+name)
		}
	}
	return found
}
