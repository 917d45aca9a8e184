package gardenlet

import (
	"context"
	"time"

	"github.com/gardener/gardener/pkg/component/extensions/extension"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pollInterval replaces gardenlet's two and five seconds, which suit hundreds of shoots: a flow has
// about six waits in a row, and the scenarios run dozens of flows. Thresholds and timeouts are
// durations and do not change.
const pollInterval = 200 * time.Millisecond

func init() {
	extension.DefaultInterval = pollInterval
	botanist.IntervalWaitOperatingSystemConfigUpdated = pollInterval
	managedresources.IntervalWait = pollInterval
	shoot.DefaultInterval = pollInterval
}

// waitUntilNamespaceDeleted replaces gardenlet's WaitUntilSeedNamespaceDeleted, which polls only
// every five seconds. The flow adds the timeout.
func (o *shootOperation) waitUntilNamespaceDeleted(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Shoot.ControlPlaneNamespace}}
	return kubernetesutils.WaitUntilResourceDeleted(ctx, o.SeedClientSet.Client(), namespace, pollInterval)
}
