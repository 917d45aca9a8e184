//go:build e2e

package e2e

import (
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// deleteClaims proves the same as the scenario slow-claim of package nodeless, but for a claim with
// a volume, which it holds for less time.
func deleteClaims() rig.Scenario {
	return rig.New("delete-claims", slices.Concat(
		[]rig.Step{rig.Prove("alpha is cached", rig.Cached(rig.Alpha))}, rig.DeletionWaits(15*time.Second))...)
}
