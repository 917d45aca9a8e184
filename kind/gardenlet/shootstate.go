package gardenlet

import (
	"context"

	"github.com/gardener/gardener/pkg/utils/gardener/shootstate"
)

// persistShootState saves what extensions have in their status.state as ShootState in the garden, which has to
// last until the shoot is restored.
func (o *shootOperation) persistShootState(ctx context.Context) error {
	return shootstate.Deploy(ctx, o.Clock, o.GardenClient, o.SeedClientSet.Client(), o.Shoot.GetInfo(), o.Shoot.ControlPlaneNamespace, false)
}

// deleteShootState deletes it; one that is gone already is no error.
func (o *shootOperation) deleteShootState(ctx context.Context) error {
	return shootstate.Delete(ctx, o.GardenClient, o.Shoot.GetInfo())
}
