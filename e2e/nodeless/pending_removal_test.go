//go:build e2e

package nodeless

import (
	"context"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// pendingRemoval proves that a cache or replica is gone after a move of the control plane if its
// owner removed it during the move.
func pendingRemoval() rig.Scenario {
	return rig.New("pending-removal", rig.PendingRemoval(func(ctx context.Context, p *rig.Run, caches ...v1alpha3.RegistryCache) {
		configure(ctx, p, nil, caches...)
	})...)
}
