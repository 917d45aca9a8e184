//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// volumeUnbound proves that a cache whose volume is never bound blocks neither the Shoot nor the
// other caches, and that the ManagedResource names it.
func volumeUnbound() rig.Scenario {
	const namedWithin = 20 * time.Second
	stuck := cachetest.Cache(rig.Gamma)
	stuck.Volume = &v1alpha3.Volume{StorageClassName: ptr.To("never")} // there is no such StorageClass
	return rig.New("volume-unbound",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("a cache without a volume fails no reconciliation, and the ManagedResource names it", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.ReconcileConfig(ctx, p, cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta), stuck))
			start := time.Now()
			p.Await(ctx, "a condition of the ManagedResource names gamma", namedWithin, func(ctx context.Context) (bool, string, error) {
				resource := &resourcesv1alpha1.ManagedResource{}
				err := p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: rig.ShootNamespace, Name: v1alpha3.ManagedResourceCaches}, resource)
				var messages []string
				for _, condition := range resource.Status.Conditions {
					if condition.Status != gardencorev1beta1.ConditionTrue {
						messages = append(messages, condition.Message)
					}
				}
				all := strings.Join(messages, "; ")
				return strings.Contains(all, "gamma"), all, err
			})
			p.Evidence("named after %s", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("nodes stay ready, and the other caches serve", func(ctx context.Context, p *rig.Run) {
			for _, worker := range p.Workers() {
				node := &corev1.Node{}
				p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node))
				p.Check(health.CheckNode(node))
			}
			p.Evidence("nodes ready; alpha: %s", cachedWithin(ctx, p, rig.Alpha, time.Now(), runningWithin))
		}),

		rig.Prove("pulls of gamma are direct", func(ctx context.Context, p *rig.Run) {
			img := p.Push(ctx, rig.Gamma)
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("gamma: %s", p.FetchedOnce(ctx, img, accesslog.AskerNode))
		}),
	)
}
