//go:build e2e

package e2e

import (
	"context"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// createdHibernated proves that a shoot can be created in the hibernated state, in which no cache
// has an address yet, and that its caches work after it wakes up.
func createdHibernated() rig.Scenario {
	return rig.New("created-hibernated",
		rig.Prove("the shoot does not exist", noShoot),
		rig.Prove("it is created hibernated", func(ctx context.Context, p *rig.Run) {
			hibernateShoot(ctx, p, rig.Alpha, rig.Beta)
			proveHibernated(ctx, p)
			p.NothingDeployed(ctx)
			p.Evidence("Extension Succeeded, nothing in the shoot")
		}),

		rig.Prove("its OperatingSystemConfigs are created without a cache", func(ctx context.Context, p *rig.Run) {
			configs := &extensionsv1alpha1.OperatingSystemConfigList{}
			p.Check(p.Session.Seed.List(ctx, configs, client.InNamespace(rig.ShootNamespace)))
			if len(configs.Items) == 0 {
				p.Fatalf("no OperatingSystemConfig found")
			}
			for _, config := range configs.Items {
				for _, unit := range config.Spec.Units {
					if unit.Content != nil && strings.Contains(*unit.Content, rig.Alpha+",") {
						p.Errorf("%s has a unit that names a cache: %s", config.Name, *unit.Content)
					}
				}
			}
			p.Evidence("%d OSCs accepted", len(configs.Items))
		}),

		rig.Prove("it wakes up, and pulls go through its caches", func(ctx context.Context, p *rig.Run) {
			wakeUp(ctx, p, rig.Alpha, rig.Beta)
			p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			awaitUpstreams(ctx, p, rig.Alpha)
			img := p.Push(ctx, rig.Alpha)
			p.Pull(ctx, p.Worker(0), img)
			p.Evidence("woken up: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),
	)
}

// noShoot deletes the shoot, if it exists.
func noShoot(ctx context.Context, p *rig.Run) {
	p.Helper()
	if err := p.Session.Seed.Get(ctx, client.ObjectKey{Name: rig.ShootNamespace}, &corev1.Namespace{}); apierrors.IsNotFound(err) {
		return
	}
	shoot, err := cachetest.Shoot(rig.Alpha, rig.Beta)
	p.Check(err)
	p.Check(p.Session.Testbed.Gardenlet.Delete(ctx, shoot))
}
