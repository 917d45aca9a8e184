package snapshot

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func claim(name, upstream, volume string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha3.LabelUpstreamHost: upstream}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
}

// boundTo returns a volume of local-path-provisioner.
func boundTo(name, node string, source corev1.PersistentVolumeSource) corev1.PersistentVolume {
	volume := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}
	if node != "" {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
	}
	return volume
}

func TestMatchVolumes(t *testing.T) {
	hostPath := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/volumes/a"}}
	local := corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volumes/b"}}
	service := corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{v1alpha3.LabelUpstreamHost: "short-label"}, Annotations: map[string]string{v1alpha3.AnnotationUpstream: "a-very-long.upstream.test"},
	}}
	got, err := matchVolumes([]corev1.Service{service}, []corev1.PersistentVolumeClaim{
		claim("cache-volume-registry-b-1", "b.test", "pv-b"),
		claim("cache-volume-registry-a-0", "short-label", "pv-a"),
		claim("cache-volume-registry-c-0", "c.test", ""), // not bound yet
		claim("somebody-elses", "b.test", "pv-b"),
	}, []corev1.PersistentVolume{boundTo("pv-a", "worker", hostPath), boundTo("pv-b", "worker2", local)})
	want := []cacheVolume{
		{"cache-volume-registry-a-0", "a-very-long.upstream.test", "registry-a-0", "worker", "/volumes/a"},
		{"cache-volume-registry-b-1", "b.test", "registry-b-1", "worker2", "/volumes/b"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}

	for name, volume := range map[string]corev1.PersistentVolume{
		"on the network": boundTo("pv-a", "worker", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}),
		"on no node":     boundTo("pv-a", "", hostPath),
	} {
		_, err := matchVolumes(nil, []corev1.PersistentVolumeClaim{claim("cache-volume-registry-a-0", "a.test", "pv-a")}, []corev1.PersistentVolume{volume})
		if err == nil || !strings.Contains(err.Error(), "is not a folder on a node") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestIsNewAndReady(t *testing.T) {
	pod := func(uid types.UID, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}}}}
	}
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"the previous one", pod("before", corev1.ConditionTrue), false},
		{"a new one that starts", pod("after", corev1.ConditionFalse), false},
		{"a new one", pod("after", corev1.ConditionTrue), true},
	} {
		if got := isNewAndReady(tc.pod, "before"); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}
