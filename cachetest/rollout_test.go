package cachetest

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRolledOut(t *testing.T) {
	done := appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 1, ReadyReplicas: 1}
	for name, tc := range map[string]struct {
		change func(*appsv1.StatefulSetStatus)
		want   string
	}{
		"rolled out": {func(*appsv1.StatefulSetStatus) {}, ""},
		"not seen":   {func(s *appsv1.StatefulSetStatus) { s.ObservedGeneration = 1 }, "cache registry-alpha: observed generation"},
		"old pod":    {func(s *appsv1.StatefulSetStatus) { s.UpdatedReplicas = 0 }, "0 of 1 replica(s) have been updated"},
		"not ready":  {func(s *appsv1.StatefulSetStatus) { s.ReadyReplicas = 0 }, "not enough ready replicas (0/1)"},
	} {
		t.Run(name, func(t *testing.T) {
			status := done
			tc.change(&status)
			alpha := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "registry-alpha", Generation: 2}, Status: status}
			beta := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "registry-beta", Generation: 2}, Status: done}
			err := RolledOut([]appsv1.StatefulSet{beta, alpha})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
