package fault

import (
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

func TestVolumesOf(t *testing.T) {
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "cache-registry-alpha-0"}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "registry-alpha-0"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "cache", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}},
		{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
	}
	pod.Spec.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{
		{Name: "config", MountPath: "/etc/registry"}, {Name: "cache", MountPath: "/var/lib/registry"},
	}}}
	if got := volumesOf(pod); !slices.Equal(got, []string{"registry-alpha-0=/var/lib/registry"}) {
		t.Errorf("volumes %q", got)
	}
}

func TestMissing(t *testing.T) {
	got := missing(map[string]string{"kubernetes.io/hostname": "old", "worker.gardener.cloud/pool": "local"}, map[string]string{"kubernetes.io/hostname": "new"})
	if !maps.Equal(got, map[string]string{"worker.gardener.cloud/pool": "local"}) {
		t.Errorf("labels %v", got)
	}
}

// TestUnsupported checks that an unsupported fault is an environment error with the reason.
func TestUnsupported(t *testing.T) {
	why := unsupported{"nodes are containers"}
	var environment interface{ EnvironmentError() }
	if err := error(why); !errors.As(err, &environment) || err.Error() != "not supported by the testbed: nodes are containers" {
		t.Errorf("error %v", err)
	}
}

// TestTimeouts checks that a fault whose end starts a machine has a longer timeout.
func TestTimeouts(t *testing.T) {
	for kind, want := range map[spec.Kind]bool{spec.Loss: true, spec.Stop: false} {
		if long := timeoutOf(spec.Fault{Kind: kind}) > 2*faultTimeout; long != want {
			t.Errorf("%s: %s", kind, timeoutOf(spec.Fault{Kind: kind}))
		}
	}
}
