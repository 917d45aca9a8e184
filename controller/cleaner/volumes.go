package cleaner

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// hostRoot is where the directories of the node are mounted, each at its own path below it.
const hostRoot = "/host"

// hostPath is a directory of the node that the cleaner mounts.
type hostPath struct {
	name, path string
	kind       corev1.HostPathType
}

// hostPaths is everything that the cleaner can see of the node: the registry configuration of
// containerd, the units, and the socket of systemd. On a node that was never configured, the first
// two may be missing.
func hostPaths() []hostPath {
	return []hostPath{
		{"containerd-config", "/etc/containerd", corev1.HostPathDirectoryOrCreate},
		{"systemd-units", path.Dir(nodeconfig.UnitPath), corev1.HostPathDirectoryOrCreate},
		{"systemd-socket", "/run/systemd", corev1.HostPathDirectory},
	}
}

func volumes() (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, dir := range hostPaths() {
		source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir.path, Type: ptr.To(dir.kind)}}
		volumes = append(volumes, corev1.Volume{Name: dir.name, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: dir.name, MountPath: hostRoot + dir.path})
	}
	return volumes, mounts
}
