//go:build e2e

package nodeless

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// workerless proves that a shoot without workers gets a clear error instead of caches, and that it
// can be deleted. The admission would reject such a shoot, but the admission is optional.
func workerless() rig.Scenario {
	var shoot *gardencorev1beta1.Shoot
	return rig.New("workerless",
		rig.Prove("the Extension of a shoot without workers is in Error with a clear message", func(ctx context.Context, p *rig.Run) {
			var err error
			shoot, err = p.Session.ShootWith(nil, rig.PlainCaches(rig.Alpha)...)
			p.Check(err)
			shoot.Spec.Provider.Workers, shoot.Spec.Provider.WorkersSettings = nil, nil
			p.Evidence("refused: %s", p.Refused(ctx, shoot, "worker"))
		}),

		rig.Prove("nothing was deployed for the shoot", func(ctx context.Context, p *rig.Run) {
			for _, name := range []string{v1alpha3.ManagedResourceCaches, v1alpha3.ManagedResourceServices} {
				resource := &resourcesv1alpha1.ManagedResource{}
				resource.Namespace, resource.Name = p.Session.Namespace(), name
				p.Gone(ctx, p.Session.Seed, resource)
			}
			p.NothingDeployed(ctx)
		}),

		rig.Prove("the shoot can be deleted", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.Check(p.Session.Testbed.Gardenlet.Delete(ctx, shoot))
			p.Gone(ctx, p.Session.Seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Session.Namespace()}})
			p.Evidence("deleted in %s", rig.Seconds(time.Since(start)))
		}),
	)
}
