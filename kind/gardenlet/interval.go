package gardenlet

import (
	"time"

	"github.com/gardener/gardener/pkg/component/extensions/extension"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	"github.com/gardener/gardener/pkg/utils/managedresources"
)

// pollInterval replaces gardenlet's two and five seconds, which are meant for hundreds of shoots: a flow waits about six
// times in a row, and the scenarios run dozens of flows. Thresholds and timeouts are durations and stay as they are.
const pollInterval = 200 * time.Millisecond

func init() {
	extension.DefaultInterval = pollInterval
	botanist.IntervalWaitOperatingSystemConfigUpdated = pollInterval
	managedresources.IntervalWait = pollInterval
	shoot.DefaultInterval = pollInterval
}
