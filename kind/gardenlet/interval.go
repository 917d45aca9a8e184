package gardenlet

import (
	"time"

	"github.com/gardener/gardener/pkg/component/extensions/extension"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	"github.com/gardener/gardener/pkg/utils/managedresources"
)

// pollInterval replaces gardenlet's two and five seconds, which are meant for hundreds of shoots. Thresholds and timeouts
// are durations and stay as they are.
const pollInterval = time.Second

func init() {
	extension.DefaultInterval = pollInterval
	botanist.IntervalWaitOperatingSystemConfigUpdated = pollInterval
	managedresources.IntervalWait = pollInterval
	shoot.DefaultInterval = pollInterval
}
