package fault

import (
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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

// TestLabel: a new machine gets the labels of the lost one, except those that it has already.
func TestLabel(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"kubernetes.io/hostname": "new"}}}
	shoot := fake.NewClientBuilder().WithObjects(node).Build()
	err := label(t.Context(), shoot, node, map[string]string{"kubernetes.io/hostname": "old", "worker.gardener.cloud/pool": "local"})
	if err == nil {
		err = shoot.Get(t.Context(), client.ObjectKeyFromObject(node), node)
	}
	if err != nil || !maps.Equal(node.Labels, map[string]string{"kubernetes.io/hostname": "new", "worker.gardener.cloud/pool": "local"}) {
		t.Errorf("labels %v, error %v", node.Labels, err)
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
