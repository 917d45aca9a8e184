package controller

import (
	"fmt"
	"strings"

	"k8s.io/utils/clock"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	reasonAllCleaned     = "AllNodesCleaned"
	reasonNodesUncleaned = "NodesPassedOver"

	// maxNodesNamed keeps the message readable in a shoot with many broken nodes.
	maxNodesNamed = 10
)

// nodesCleaned returns the condition after a clean-up that skipped the nodes, each with the reason.
func nodesCleaned(clock clock.Clock, ex *extensionsv1alpha1.Extension, skipped []string) gardencorev1beta1.Condition {
	condition := v1beta1helper.GetOrInitConditionWithClock(clock, ex.Status.Conditions, v1alpha3.ConditionNodesCleaned)
	if len(skipped) == 0 {
		return v1beta1helper.UpdatedConditionWithClock(clock, condition, gardencorev1beta1.ConditionTrue, reasonAllCleaned,
			"The last clean-up of removed caches reached every node.")
	}
	return v1beta1helper.UpdatedConditionWithClock(clock, condition, gardencorev1beta1.ConditionFalse, reasonNodesUncleaned,
		fmt.Sprintf("The last clean-up of removed caches skipped nodes: %s. Until gardener-node-agent applies the next "+
			"OperatingSystemConfig there, or the nodes are replaced, they try the removed cache before the upstream.", named(skipped)))
}

func named(nodes []string) string {
	if more := len(nodes) - maxNodesNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(nodes[:maxNodesNamed], ", "), more)
	}
	return strings.Join(nodes, ", ")
}
