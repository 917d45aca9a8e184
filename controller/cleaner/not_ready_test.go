package cleaner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
