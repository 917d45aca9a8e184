//go:build e2e

package nodeless

import (
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// slowClaim proves that the deletion of a Shoot waits for a claim whose deletion takes a minute.
func slowClaim() rig.Scenario {
	return rig.New("slow-claim", slices.Concat(
		[]rig.Step{rig.Prove("alpha is cached", cached(rig.Alpha))}, rig.DeletionWaits(time.Minute))...)
}
