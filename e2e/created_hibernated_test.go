//go:build e2e

package e2e

import (
	"context"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// createdHibernated proves that a shoot can be created asleep, when nobody can say yet at which address a cache will be, and
// that its caches work once it is awake.
func createdHibernated() scenario {
	return newScenario("created-hibernated",
		step{"there is no shoot", noShoot},
		step{"it is created asleep", func(ctx context.Context, p *scenarioRun) {
			p.Hibernate(ctx, alpha, beta)
			proveAsleep(ctx, p)
			proveNothingDeployed(ctx, p)
			p.Evidence("Extension Succeeded, nothing in the shoot")
		}},
		step{"its operating system configs are written without a cache", func(ctx context.Context, p *scenarioRun) {
			configs := &extensionsv1alpha1.OperatingSystemConfigList{}
			p.Check(p.suite.seed.List(ctx, configs, client.InNamespace(shootNamespace)))
			if len(configs.Items) == 0 {
				p.Fatalf("there is no OperatingSystemConfig")
			}
			for _, config := range configs.Items {
				for _, unit := range config.Spec.Units {
					if unit.Content != nil && strings.Contains(*unit.Content, alpha+",") {
						p.Errorf("%s has a unit that names a cache: %s", config.Name, *unit.Content)
					}
				}
			}
			p.Evidence("%d OSCs accepted", len(configs.Items))
		}},
		step{"it wakes up, and pulls go through its caches", func(ctx context.Context, p *scenarioRun) {
			p.WakeUp(ctx, alpha, beta)
			p.AwaitCaches(ctx, alpha, beta)
			p.AwaitMirrors(ctx, alpha, beta)
			p.AwaitUpstreams(ctx, alpha)
			img := p.Push(ctx, alpha)
			p.Pull(ctx, p.Worker(0), img)
			p.Evidence("awake: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}},
	)
}

// noShoot makes the starting state without a shoot. It is quick when that is so already.
func noShoot(ctx context.Context, p *scenarioRun) {
	p.Helper()
	if err := p.suite.seed.Get(ctx, client.ObjectKey{Name: shootNamespace}, &corev1.Namespace{}); apierrors.IsNotFound(err) {
		return
	}
	shoot, err := operate.ShootWithCaches(alpha, beta)
	p.Check(err)
	p.Check(p.suite.testbed.Gardenlet.Delete(ctx, shoot))
}
