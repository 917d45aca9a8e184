//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// gardenRetry proves that a bad configuration makes the Shoot fail with the path of the field and
// the code of a user's error, that a retry repeats the operation, and that a repaired Shoot
// recovers.
func gardenRetry() rig.Scenario {
	bad := rig.BadConfigs[0]
	return rig.New("garden-retry",
		rig.Prove("alpha is cached", rig.Cached(rig.Alpha)),
		rig.Prove("a bad configuration makes the Shoot fail, and changes no cache", func(ctx context.Context, p *rig.Run) {
			before := p.StateOfCaches(ctx, rig.Alpha)
			changeShoot(ctx, p, func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.Extensions = []gardencorev1beta1.Extension{gardenlet.Extension(v1alpha3.ExtensionType, rig.ProviderConfig(bad.Caches))}
			})
			shoot := awaitState(ctx, p, gardencorev1beta1.LastOperationStateFailed)
			i := slices.IndexFunc(shoot.Status.LastErrors, func(e gardencorev1beta1.LastError) bool { return strings.Contains(e.Description, bad.Field) })
			if i < 0 || !slices.Contains(shoot.Status.LastErrors[i].Codes, gardencorev1beta1.ErrorConfigurationProblem) {
				p.Fatalf("lastErrors %+v, want %s with code %s", shoot.Status.LastErrors, bad.Field, gardencorev1beta1.ErrorConfigurationProblem)
			}
			if after := p.StateOfCaches(ctx, rig.Alpha); after != before {
				p.Fatalf("before:\n%s\nafter:\n%s", before, after)
			}
			p.Evidence("Failed, %s: %s", gardencorev1beta1.ErrorConfigurationProblem, bad.Field)
		}),
		rig.Prove("a retry runs the operation again, which fails again", func(ctx context.Context, p *rig.Run) {
			before := gardenShoot(ctx, p)
			annotate(ctx, p, v1beta1constants.ShootOperationRetry)
			if shoot := awaitState(ctx, p, gardencorev1beta1.LastOperationStateFailed); shoot.Status.ObservedGeneration == before.Status.ObservedGeneration {
				p.Fatalf("the annotation has started no operation")
			}
		}),
		rig.Prove("once it is repaired, the Shoot is healthy", func(ctx context.Context, p *rig.Run) {
			repaired, err := cachetest.Shoot(rig.Alpha)
			p.Check(err)
			changeShoot(ctx, p, func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = repaired.Spec.Extensions })
			awaitHealthy(ctx, p)
		}),
	)
}
