//go:build e2e

package e2e

import (
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// deleteClaims proves the claims of the scenario slow-claim of package nodeless for a volume claim
// with a real volume. The volume claim is held for a shorter time.
func deleteClaims() rig.Scenario {
	return rig.New("delete-claims", slices.Concat(
		[]rig.Step{rig.Prove("alpha is cached", rig.Cached(rig.Alpha))}, rig.DeletionWaits(15*time.Second))...)
}
