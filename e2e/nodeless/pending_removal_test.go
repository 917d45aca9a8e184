//go:build e2e

package nodeless

import (
	"context"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// pendingRemoval proves that what an owner removes while the control plane moves is gone
// afterwards.
func pendingRemoval() rig.Scenario {
	return rig.New("pending-removal", rig.PendingRemoval(func(ctx context.Context, p *rig.Run, caches ...v1alpha3.RegistryCache) {
		configure(ctx, p, nil, caches...)
	})...)
}
