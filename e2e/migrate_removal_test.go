//go:build e2e

package e2e

import (
	"context"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// migrateRemoval proves the claims of the scenario pending-removal of package nodeless, and that no
// node keeps a mirror of the removed cache.
func migrateRemoval() rig.Scenario {
	return rig.New("migrate-removal", rig.PendingRemoval(func(ctx context.Context, p *rig.Run, caches ...v1alpha3.RegistryCache) {
		p.Check(rig.UndoLeftovers(ctx, p))
		p.Configure(ctx, nil, caches...)
	})...)
}
