package cleaner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxNamed is how many nodes a text names, to keep it short enough for a status.
const maxNamed = 10

// Rollout lists the nodes of the shoot that the DaemonSet has not cleaned yet.
type Rollout struct {
	// Unfinished are ready nodes that are not clean, as "<name> (<reason>)".
	Unfinished []string
	// NotReady are the names of nodes that are not ready, so that no pod can start there.
	NotReady []string
	// NotReadySince is when the last of the nodes in NotReady became unready, by the shoot's clock. It
	// is zero if there is no such node, or if one of them may never have been ready.
	NotReadySince time.Time
	// Started is when the first of the DaemonSet's pods with the current task was created, by the
	// shoot's clock. It is zero if there is none.
	Started time.Time
}

// RolloutOf evaluates all nodes of the shoot and the pods with the DaemonSet's labels. A node is
// clean when the init container of one of the DaemonSet's pods has succeeded there with the current
// task. A clean node that is no longer ready is still clean.
func RolloutOf(set *appsv1.DaemonSet, pods []corev1.Pod, nodes []corev1.Node) Rollout {
	r := Rollout{Started: started(set, pods)}
	var since []time.Time
	for i := range nodes {
		reason := unclean(set, pods, nodes[i].Name)
		switch {
		case reason == "":
		case isReady(&nodes[i]):
			r.Unfinished = append(r.Unfinished, fmt.Sprintf("%s (%s)", nodes[i].Name, reason))
		default:
			r.NotReady = append(r.NotReady, nodes[i].Name)
			since = append(since, notReadySince(&nodes[i]))
		}
	}
	if len(since) > 0 && !slices.ContainsFunc(since, time.Time.IsZero) {
		r.NotReadySince = slices.MaxFunc(since, time.Time.Compare)
	}
	return r
}

// Reported returns nil if the DaemonSet reports the task as done on every node, else the progress.
// The DaemonSet counts ready pods, so Reported never returns nil if a clean node stays not ready.
func Reported(set *appsv1.DaemonSet) error {
	s := set.Status
	if s.ObservedGeneration >= set.Generation && min(s.UpdatedNumberScheduled, s.NumberReady) >= s.DesiredNumberScheduled {
		return nil
	}
	return fmt.Errorf("DaemonSet %s has pods with this task on %d of %d nodes, and %d ready pods",
		set.Name, s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberReady)
}

// Unclean returns all nodes that are not clean, as "<name> (<reason>)".
func (r Rollout) Unclean() []string {
	unclean := slices.Clone(r.Unfinished)
	for _, name := range r.NotReady {
		unclean = append(unclean, name+" (the node is not ready)")
	}
	return unclean
}

// Err returns nil when every node is clean, and otherwise an error that names the unclean nodes.
func (r Rollout) Err() error {
	if unclean := r.Unclean(); len(unclean) > 0 {
		return fmt.Errorf("nodes not cleaned: %s", Named(unclean))
	}
	return nil
}

// Named lists the first nodes, and tells how many more there are.
func Named(nodes []string) string {
	if more := len(nodes) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(nodes[:maxNamed], ", "), more)
	}
	return strings.Join(nodes, ", ")
}

// unclean returns why the node is not clean, or "" if it is clean.
func unclean(set *appsv1.DaemonSet, pods []corev1.Pod, node string) string {
	reason := "no cleaner pod yet"
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != node || !hasTask(pod, set) {
			continue
		}
		state := stateOf(pod)
		if state == "" {
			return ""
		}
		reason = fmt.Sprintf("pod %s: %s", pod.Name, state)
	}
	return reason
}

// hasTask returns whether the pod belongs to the DaemonSet and has its current task.
func hasTask(pod *corev1.Pod, set *appsv1.DaemonSet) bool {
	return metav1.IsControlledBy(pod, set) && slices.Equal(taskOf(&pod.Spec), taskOf(&set.Spec.Template.Spec))
}

func started(set *appsv1.DaemonSet, pods []corev1.Pod) time.Time {
	var first time.Time
	for i := range pods {
		if created := pods[i].CreationTimestamp.Time; hasTask(&pods[i], set) && (first.IsZero() || created.Before(first)) {
			first = created
		}
	}
	return first
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

func isReady(node *corev1.Node) bool {
	ready := readiness(node)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// notReadySince returns the time since which a node is not ready. The time is zero if the node may
// never have been ready: kubelet registers a node as not ready, and it may stay so for minutes.
func notReadySince(node *corev1.Node) time.Time {
	ready := readiness(node)
	if ready == nil || ready.LastTransitionTime.Sub(node.CreationTimestamp.Time) < registration {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// registration is the time within which a new Node gets its first conditions, including clock skew.
const registration = 10 * time.Second

func readiness(node *corev1.Node) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}
