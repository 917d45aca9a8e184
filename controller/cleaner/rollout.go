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

// maxNamed is how many nodes a message names, so that it stays readable, and fits into a status, in a big cluster.
const maxNamed = 10

// Rollout says which nodes of the shoot the DaemonSet has not cleaned (yet).
type Rollout struct {
	// Unfinished are the nodes that are ready, as "<name> (<why it is not clean>)".
	Unfinished []string
	// NotReady are the names of the nodes whose kubelet does not report to be ready, so that no pod can start there.
	NotReady []string
	// QuietSince is when the last of the nodes in NotReady ceased to be ready, by the clock of the shoot. Zero if one of them
	// may still be on its way to be ready for the first time, and if there is none.
	QuietSince time.Time
}

// RolloutOf looks at all nodes of the shoot and at the pods with the labels of the DaemonSet. A node is clean when the
// init container of a pod there ended well. Only pods of this DaemonSet with the task that it has now count, so neither
// a DaemonSet that has no pods yet nor the pods of an earlier task pass for a clean node. The init container counts, not
// the readiness of the pod: on a node that was cleaned and failed afterwards no pod is ready.
func RolloutOf(set *appsv1.DaemonSet, pods []corev1.Pod, nodes []corev1.Node) Rollout {
	var r Rollout
	var quiet []time.Time
	for i := range nodes {
		why := unclean(set, pods, nodes[i].Name)
		switch {
		case why == "":
		case isReady(&nodes[i]):
			r.Unfinished = append(r.Unfinished, fmt.Sprintf("%s (%s)", nodes[i].Name, why))
		default:
			r.NotReady = append(r.NotReady, nodes[i].Name)
			quiet = append(quiet, quietSince(&nodes[i]))
		}
	}
	if !slices.ContainsFunc(quiet, time.Time.IsZero) {
		r.QuietSince = latest(quiet)
	}
	return r
}

// Reported returns nil if the DaemonSet, by its own account, has done its task on every node, and otherwise an error that
// says how far it is. It counts ready pods, so it may never report that although RolloutOf finds every node clean.
func Reported(set *appsv1.DaemonSet) error {
	s := set.Status
	if s.ObservedGeneration >= set.Generation && min(s.UpdatedNumberScheduled, s.NumberReady) >= s.DesiredNumberScheduled {
		return nil
	}
	return fmt.Errorf("DaemonSet %s has this task on %d of %d nodes, and %d ready pods",
		set.Name, s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberReady)
}

// Unclean returns all nodes that are not clean, as "<name> (<why>)".
func (r Rollout) Unclean() []string {
	missing := slices.Clone(r.Unfinished)
	for _, name := range r.NotReady {
		missing = append(missing, name+" (the node is not ready)")
	}
	return missing
}

// Err returns nil when every node is clean, otherwise an error that names the ones that are not.
func (r Rollout) Err() error {
	missing := r.Unclean()
	if len(missing) == 0 {
		return nil
	}
	more := ""
	if len(missing) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(missing)-maxNamed)
		missing = missing[:maxNamed]
	}
	return fmt.Errorf("nodes not cleaned: %s%s", strings.Join(missing, ", "), more)
}

// unclean returns why the node is not clean, empty if it is.
func unclean(set *appsv1.DaemonSet, pods []corev1.Pod, node string) string {
	why := "it has no pod of the cleaner yet"
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != node || !metav1.IsControlledBy(pod, set) || !slices.Equal(taskOf(&pod.Spec), taskOf(&set.Spec.Template.Spec)) {
			continue
		}
		state := stateOf(pod)
		if state == "" {
			return ""
		}
		why = fmt.Sprintf("pod %s: %s", pod.Name, state)
	}
	return why
}

// taskOf returns the command line of the init container, which is the task.
func taskOf(spec *corev1.PodSpec) []string {
	for i := range spec.InitContainers {
		if spec.InitContainers[i].Name == cleanName {
			return spec.InitContainers[i].Args
		}
	}
	return nil
}

// stateOf returns what the pod is at, empty when its init container ended well.
func stateOf(pod *corev1.Pod) string {
	for _, status := range pod.Status.InitContainerStatuses {
		ended, waiting := status.State.Terminated, status.State.Waiting
		switch {
		case status.Name != cleanName:
		case ended != nil && ended.ExitCode == 0:
			return ""
		case ended != nil:
			return fmt.Sprintf("exit code %d", ended.ExitCode)
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

// quietSince returns since when a node is not ready, zero if it may never have been: its kubelet reports that it is not ready
// when it registers the node, and some machines need minutes from there.
func quietSince(node *corev1.Node) time.Time {
	ready := readiness(node)
	if ready == nil || ready.LastTransitionTime.Sub(node.CreationTimestamp.Time) < registration {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// registration is within what time after the creation of a Node its first conditions are set, by another clock.
const registration = 10 * time.Second

func latest(times []time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

func readiness(node *corev1.Node) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}
