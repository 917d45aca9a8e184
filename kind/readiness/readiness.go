package readiness

import corev1 "k8s.io/api/core/v1"

// Node says whether the node's kubelet reports it as ready, and otherwise why not; "" where it does not say.
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

// Pod says whether the pod is reported as ready.
func Pod(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
