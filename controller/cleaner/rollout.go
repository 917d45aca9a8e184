package cleaner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nodeutil "k8s.io/component-helpers/node/util"
)

// maxNamed bounds how many nodes a text names, so that the text is short enough for a status.
const maxNamed = 10

// Rollout describes how far the DaemonSet has cleaned the nodes of the shoot.
type Rollout struct {
	// Unclean are the nodes that are not clean, as "<name> (<reason>)". Nodes that are not ready,
	// where no pod can start, are at the end.
	Unclean []string
	// NotReadySince is when the last of the unclean nodes became unready, by the shoot's clock. It is
	// zero if no node is unclean, or if an unclean one is ready or may never have been ready.
	NotReadySince time.Time
	// Started is when the first of the DaemonSet's pods with the current task was created, by the
	// shoot's clock. It is zero if there is no such pod.
	Started time.Time
}

// RolloutOf evaluates all nodes of the shoot and the pods with the DaemonSet's labels. A node is
// clean when the init container of one of the DaemonSet's pods has succeeded there with the current
// task. A clean node that is no longer ready is still clean.
func RolloutOf(set *appsv1.DaemonSet, pods []corev1.Pod, nodes []corev1.Node) Rollout {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !hasTask(&p, set) })
	var r Rollout
	var notReady []string
	var since []time.Time
	for i := range nodes {
		reason := unclean(pods, nodes[i].Name)
		_, ready := nodeutil.GetNodeCondition(&nodes[i].Status, corev1.NodeReady)
		switch {
		case reason == "":
		case ready != nil && ready.Status == corev1.ConditionTrue:
			r.Unclean = append(r.Unclean, fmt.Sprintf("%s (%s)", nodes[i].Name, reason))
			since = append(since, time.Time{})
		default:
			notReady = append(notReady, nodes[i].Name+" (the node is not ready)")
			since = append(since, notReadySince(&nodes[i], ready))
		}
	}
	r.Unclean = append(r.Unclean, notReady...)
	if len(since) > 0 && !slices.ContainsFunc(since, time.Time.IsZero) {
		r.NotReadySince = slices.MaxFunc(since, time.Time.Compare)
	}
	if len(pods) > 0 {
		r.Started = slices.MinFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }).CreationTimestamp.Time
	}
	return r
}

// Reported returns the progress as an error until the DaemonSet reports the task as done. The
// DaemonSet counts ready pods, so Reported does not return nil while a clean node is not ready.
func Reported(set *appsv1.DaemonSet) error {
	s := set.Status
	if s.ObservedGeneration >= set.Generation && min(s.UpdatedNumberScheduled, s.NumberReady) >= s.DesiredNumberScheduled {
		return nil
	}
	return fmt.Errorf("DaemonSet %s has pods with this task on %d of %d nodes, and %d ready pods",
		set.Name, s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberReady)
}

// Named returns the first nodes and the number of the others.
func Named(nodes []string) string {
	if more := len(nodes) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(nodes[:maxNamed], ", "), more)
	}
	return strings.Join(nodes, ", ")
}

// unclean returns why the node is not clean, or "" if it is. All given pods have the current task.
func unclean(pods []corev1.Pod, node string) string {
	reason := "no cleaner pod yet"
	for i := range pods {
		if pods[i].Spec.NodeName != node {
			continue
		}
		state := stateOf(&pods[i])
		if state == "" {
			return ""
		}
		reason = fmt.Sprintf("pod %s: %s", pods[i].Name, state)
	}
	return reason
}

// hasTask reports whether the pod belongs to the DaemonSet and has its current task.
func hasTask(pod *corev1.Pod, set *appsv1.DaemonSet) bool {
	return metav1.IsControlledBy(pod, set) && slices.Equal(taskOf(&pod.Spec), taskOf(&set.Spec.Template.Spec))
}

// taskOf returns the command line of the init container, which identifies the task.
func taskOf(spec *corev1.PodSpec) []string {
	for i := range spec.InitContainers {
		if spec.InitContainers[i].Name == cleanName {
			return spec.InitContainers[i].Args
		}
	}
	return nil
}

// stateOf returns the state of the pod's init container, or "" when it has succeeded.
func stateOf(pod *corev1.Pod) string {
	for _, status := range pod.Status.InitContainerStatuses {
		terminated, waiting := status.State.Terminated, status.State.Waiting
		switch {
		case status.Name != cleanName:
		case terminated != nil && terminated.ExitCode == 0:
			return ""
		case terminated != nil:
			return fmt.Sprintf("exit code %d", terminated.ExitCode)
		case waiting != nil && waiting.Reason != "":
			return waiting.Reason
		default:
			return "still cleaning"
		}
	}
	return "not started"
}

// registration is how long a new Node may take to get its first conditions, including clock skew.
const registration = 10 * time.Second

// notReadySince returns the time since which a node is not ready. The time is zero if the node may
// never have been ready: kubelet registers a node as not ready, and it may remain so for minutes.
func notReadySince(node *corev1.Node, ready *corev1.NodeCondition) time.Time {
	if ready == nil || ready.LastTransitionTime.Sub(node.CreationTimestamp.Time) < registration {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}
