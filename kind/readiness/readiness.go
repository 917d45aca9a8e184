package readiness

import (
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
)

// Node reports whether the node is Ready. If it is not, why is the reason and message of its Ready
// condition, or "" if it has no such condition.
func Node(node *corev1.Node) (ready bool, why string) {
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return true, ""
		}
		return false, condition.Reason + ": " + condition.Message
	}
	return false, ""
}

// Pod reports whether the pod is Ready.
func Pod(pod *corev1.Pod) bool { return health.IsPodReady(pod) }
