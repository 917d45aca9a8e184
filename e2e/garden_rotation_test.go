//go:build e2e

package e2e

import (
	"context"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// gardenRotation proves that the annotations for the rotation of all credentials rotate the CA of
// the caches in two phases.
func gardenRotation() rig.Scenario {
	caches := []v1alpha3.RegistryCache{tlsCache(rig.Alpha)}
	var pulls *stream
	rotate := func(operation string, phase gardencorev1beta1.CredentialsRotationPhase, cas int) func(context.Context, *rig.Run) {
		return func(ctx context.Context, p *rig.Run) {
			annotate(ctx, p, operation)
			shoot := awaitState(ctx, p, gardencorev1beta1.LastOperationStateSucceeded)
			if got := v1beta1helper.GetShootCARotationPhase(shoot.Status.Credentials); got != phase {
				p.Fatalf("the rotation of the CA is in phase %s, want %s", got, phase)
			}
			awaitCAs(ctx, p, cas)
			p.Evidence("%s: %s, %d CAs on every worker", operation, phase, cas)
		}
	}
	return rig.New("garden-rotation",
		rig.Prove("alpha is cached over HTTPS", func(ctx context.Context, p *rig.Run) {
			rig.Configured(caches...)(ctx, p)
			pulls = pullContinuously(ctx, p, rig.Alpha)
		}),
		rig.Prove("the annotation starts the rotation", rotate(v1beta1constants.OperationRotateCredentialsStart, gardencorev1beta1.RotationPrepared, 2)),
		rig.Prove("the annotation completes it", rotate(v1beta1constants.OperationRotateCredentialsComplete, gardencorev1beta1.RotationCompleted, 1)),
		rig.Prove("no pull failed or was slow", func(_ context.Context, p *rig.Run) { pulls.end(p, rig.Alpha, rig.MaxPull) }),
	)
}
