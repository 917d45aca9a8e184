package readiness

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNode(t *testing.T) {
	other := corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Reason: "Full"}
	for _, tc := range []struct {
		name       string
		conditions []corev1.NodeCondition
		ready      bool
		why        string
	}{
		{"no conditions", nil, false, ""},
		{"another condition", []corev1.NodeCondition{other}, false, ""},
		{"ready", []corev1.NodeCondition{other, {Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}, true, ""},
		{"not ready", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "no CNI"}}, false, "KubeletNotReady: no CNI"},
		{"gone", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "gone"}}, false, "NodeStatusUnknown: gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := &corev1.Node{Status: corev1.NodeStatus{Conditions: tc.conditions}}
			if ready, why := Node(node); ready != tc.ready || why != tc.why {
				t.Errorf("ready %t, %q; want %t, %q", ready, why, tc.ready, tc.why)
			}
		})
	}
}

func TestPod(t *testing.T) {
	for status, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionFalse: false, "": false} {
		pod := &corev1.Pod{}
		if status != "" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status}}
		}
		if got := Pod(pod); got != want {
			t.Errorf("%q: ready %t, want %t", status, got, want)
		}
	}
}
