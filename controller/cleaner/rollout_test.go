package cleaner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

var (
	ended   = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	failed  = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	noImage = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
)

func nodeThat(name string, ready corev1.ConditionStatus) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue},
		{Type: corev1.NodeReady, Status: ready},
	}}}
}

func setFor(t *testing.T, uid types.UID, upstreams ...string) *appsv1.DaemonSet {
	t.Helper()
	set := DaemonSet(Task{Upstreams: upstreams}, image)
	set.UID = uid
	return set
}

func podOn(node string, set *appsv1.DaemonSet, states ...corev1.ContainerState) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            v1alpha3.CleanerDaemonSet + "-" + node,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = node
	for _, state := range states {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses,
			corev1.ContainerStatus{Name: "injected", State: ended}, corev1.ContainerStatus{Name: cleanName, State: state})
	}
	return pod
}

func TestRolloutOf(t *testing.T) {
	set := setFor(t, "now", "a.test", "b.test")
	before, otherTask := setFor(t, "before", "a.test", "b.test"), setFor(t, "now", "a.test")
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	one, two := nodeThat("one", yes), nodeThat("two", yes)
	noPod := []string{"one (no cleaner pod yet)"}
	const podOne = "one (pod registry-cleaner-one: "
	for name, test := range map[string]struct {
		pods  []corev1.Pod
		nodes []corev1.Node
		want  []string
	}{
		"no nodes":                     {},
		"just created, no pods yet":    {nil, []corev1.Node{one}, noPod},
		"all clean":                    {[]corev1.Pod{podOn("two", set, ended), podOn("one", set, ended)}, []corev1.Node{one, two}, nil},
		"one of two has a pod":         {[]corev1.Pod{podOn("one", set, ended)}, []corev1.Node{one, two}, []string{"two (no cleaner pod yet)"}},
		"cleaning":                     {[]corev1.Pod{podOn("one", set, running)}, []corev1.Node{one}, []string{podOne + "still cleaning)"}},
		"image missing":                {[]corev1.Pod{podOn("one", set, noImage)}, []corev1.Node{one}, []string{podOne + "ImagePullBackOff)"}},
		"cleaning failed":              {[]corev1.Pod{podOn("one", set, failed)}, []corev1.Node{one}, []string{podOne + "exit code 3)"}},
		"no status yet":                {[]corev1.Pod{podOn("one", set)}, []corev1.Node{one}, []string{podOne + "not started)"}},
		"pod of an old DaemonSet":      {[]corev1.Pod{podOn("one", before, ended)}, []corev1.Node{one}, noPod},
		"pod of an old task":           {[]corev1.Pod{podOn("one", otherTask, ended)}, []corev1.Node{one}, noPod},
		"replaced pod":                 {[]corev1.Pod{podOn("one", set, ended), podOn("one", set)}, []corev1.Node{one}, nil},
		"pod is gone with its node":    {[]corev1.Pod{podOn("gone", set, running), podOn("one", set, ended)}, []corev1.Node{one}, nil},
		"node not ready":               {[]corev1.Pod{podOn("one", set, ended)}, []corev1.Node{one, nodeThat("two", no)}, []string{"two (the node is not ready)"}},
		"node unreachable":             {[]corev1.Pod{podOn("two", set, running)}, []corev1.Node{nodeThat("two", unknown)}, []string{"two (the node is not ready)"}},
		"node not ready since cleaned": {[]corev1.Pod{podOn("two", set, ended)}, []corev1.Node{nodeThat("two", unknown)}, nil},
		"not ready ones are last":      {nil, []corev1.Node{nodeThat("two", no), one}, append(noPod, "two (the node is not ready)")},
		"node without conditions":      {nil, []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "two"}}}, []string{"two (the node is not ready)"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := RolloutOf(set, test.pods, test.nodes)
			if !slices.Equal(got.Unclean, test.want) {
				t.Errorf("got %q, want %q", got.Unclean, test.want)
			}
		})
	}
}

// TestStarted checks that only pods with the current task count.
func TestStarted(t *testing.T) {
	set := setFor(t, "now", "a.test", "b.test")
	created := func(seconds int64, of *appsv1.DaemonSet) corev1.Pod {
		pod := podOn("one", of)
		pod.CreationTimestamp = metav1.Unix(seconds, 0)
		return pod
	}
	oldTask := created(1, setFor(t, "now", "a.test"))
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want time.Time
	}{
		"no pods":          {nil, time.Time{}},
		"of another task":  {[]corev1.Pod{oldTask}, time.Time{}},
		"the first counts": {[]corev1.Pod{oldTask, created(5, set), created(3, set), created(4, set)}, time.Unix(3, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RolloutOf(set, test.pods, nil).Started; !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestNotReadySince: the node that became unready last determines the time, unless it is clean.
func TestNotReadySince(t *testing.T) {
	set := setFor(t, "now", "a.test")
	at := func(name string, minutes int) corev1.Node {
		node := nodeThat(name, corev1.ConditionUnknown)
		node.CreationTimestamp = metav1.Unix(60, 0)
		node.Status.Conditions[1].LastTransitionTime = metav1.Unix(int64(60*minutes), 0)
		return node
	}
	booting := at("booting", 1)
	booting.Status.Conditions[1].LastTransitionTime = metav1.Unix(60+4, 0)
	silent := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "silent", CreationTimestamp: metav1.Unix(60, 0)}}
	for name, test := range map[string]struct {
		nodes []corev1.Node
		want  time.Time
	}{
		"all clean":         {[]corev1.Node{at("clean", 9)}, time.Time{}},
		"two":               {[]corev1.Node{at("one", 3), at("two", 5), at("three", 4), at("clean", 9)}, time.Unix(60*5, 0)},
		"one is booting":    {[]corev1.Node{at("one", 3), booting}, time.Time{}},
		"no conditions":     {[]corev1.Node{silent, at("one", 3)}, time.Time{}},
		"one is ready":      {[]corev1.Node{at("one", 3), nodeThat("two", corev1.ConditionTrue)}, time.Time{}},
		"ready, unfinished": {[]corev1.Node{nodeThat("one", corev1.ConditionTrue)}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RolloutOf(set, []corev1.Pod{podOn("clean", set, ended)}, test.nodes).NotReadySince; !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestReported: a status that describes an earlier generation of the DaemonSet does not count.
func TestReported(t *testing.T) {
	for name, test := range map[string]struct {
		generation int64
		status     appsv1.DaemonSetStatus
		done       bool
	}{
		"done":          {2, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberReady: 3}, true},
		"no nodes":      {2, appsv1.DaemonSetStatus{ObservedGeneration: 2}, true},
		"just created":  {1, appsv1.DaemonSetStatus{}, false},
		"old task":      {2, appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberReady: 3}, false},
		"old pods":      {2, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 1, NumberReady: 3}, false},
		"one not ready": {2, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberReady: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := setFor(t, "now", "a.test")
			set.Generation, set.Status = test.generation, test.status
			if err := Reported(set); (err == nil) != test.done {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	nodes := []string{"one (still cleaning)", "two"}
	if got, want := Named(nodes), "one (still cleaning), two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 50 {
		nodes = append(nodes, fmt.Sprint("node-", i))
	}
	if got := Named(nodes); len(got) > 600 || !strings.HasSuffix(got, " and 42 more") {
		t.Errorf("the text has %d characters: %s", len(got), got)
	}
}
