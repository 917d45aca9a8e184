package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNodeReady(t *testing.T) {
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
			if ready, why := NodeReady(node); ready != tc.ready || why != tc.why {
				t.Errorf("ready %t, %q; want %t, %q", ready, why, tc.ready, tc.why)
			}
		})
	}
}
