//go:build e2e

package e2e

import (
	"context"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// gardenDeletion proves that a user deletes and creates the Shoot with kubectl, and only after a
// confirmation.
func gardenDeletion() rig.Scenario {
	return rig.New("garden-deletion",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("the deletion is refused without a confirmation", func(ctx context.Context, p *rig.Run) {
			code, text := kubectl(ctx, p, "", "delete", "shoot", gardenlet.DefaultShoot, "--wait=false")
			if code == 0 || !strings.Contains(text, v1beta1constants.ConfirmationDeletion) {
				p.Fatalf("exit code %d: %s", code, text)
			}
			p.Evidence("refused: %s", strings.TrimSpace(text))
		}),
		rig.Prove("with a confirmation, the Shoot and its objects go, and no cleaner runs", func(ctx context.Context, p *rig.Run) {
			watched := watchDeletion(ctx, p)
			if code, text := kubectl(ctx, p, "", "annotate", "shoot", gardenlet.DefaultShoot, v1beta1constants.ConfirmationDeletion+"=true"); code != 0 {
				p.Fatalf("confirm: exit code %d: %s", code, text)
			}
			if code, text := kubectl(ctx, p, "", "delete", "shoot", gardenlet.DefaultShoot, "--timeout=3m"); code != 0 {
				p.Fatalf("delete: exit code %d: %s", code, text)
			}
			watched.proveNoCleaner(ctx, p)
			watched.proveOrder(p)
		}),
		rig.Prove("kubectl creates it again, with caches", func(ctx context.Context, p *rig.Run) {
			shoot, err := cachetest.Shoot(rig.Alpha, rig.Beta)
			p.Check(err)
			if code, text := kubectlApply(ctx, p, asWritten(shoot)); code != 0 {
				p.Fatalf("apply: exit code %d: %s", code, text)
			}
			awaitHealthy(ctx, p)
			p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			p.Evidence("created, scheduled and healthy")
		}),
	)
}
