package cleaner

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// hostRoot is where the directories of the node are mounted, each at its own path below it.
const hostRoot = "/host"

// hostPath is a directory of the node that the clean-up needs.
type hostPath struct {
	name, path string
	kind       corev1.HostPathType
}

// hostPaths is all of the node that the clean-up can see: the registry configuration of containerd, the unit, and
// the socket of systemd. On a node that never got our configuration the first two may be missing.
func hostPaths() []hostPath {
	return []hostPath{
		{"containerd-config", "/etc/containerd", corev1.HostPathDirectoryOrCreate},
		{"systemd-units", path.Dir(nodeconfig.UnitPath), corev1.HostPathDirectoryOrCreate},
		{"systemd-socket", "/run/systemd", corev1.HostPathDirectory},
	}
}

func volumes() []corev1.Volume {
	var result []corev1.Volume
	for _, dir := range hostPaths() {
		result = append(result, corev1.Volume{
			Name: dir.name,
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: dir.path,
				Type: ptr.To(dir.kind),
			}},
		})
	}
	return result
}

func volumeMounts() []corev1.VolumeMount {
	var result []corev1.VolumeMount
	for _, dir := range hostPaths() {
		result = append(result, corev1.VolumeMount{Name: dir.name, MountPath: hostRoot + dir.path})
	}
	return result
}
