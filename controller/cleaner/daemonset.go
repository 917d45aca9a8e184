// Package cleaner builds the DaemonSet registry-cleaner, whose pods remove the configuration of
// deleted caches from the nodes of a shoot. An init container runs `registry-cache clean`. A node
// is clean when this container has succeeded. RolloutOf returns the nodes that are not clean.
//
// All functions are pure. Package nodeconfig/cleaner implements the clean-up of a node, and
// controller/clean.go deploys the DaemonSet, waits for the nodes and deletes it.
package cleaner

import (
	"path"
	"slices"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const (
	// cleanName is the name of the init container that runs the task.
	cleanName = "clean"
	// finalizeAfter is how long gardener-resource-manager waits for the pods before it removes the
	// DaemonSet's finalizer, because a pod on a dead node never terminates. This exceeds the pods'
	// grace period. Deleting hundreds of pods takes longer, and continues without the DaemonSet.
	finalizeAfter = "10s"
)

// Task describes what to clean on every node.
type Task struct {
	// Upstreams are the upstreams whose configuration is removed.
	Upstreams []string
	// All removes the configuration of all upstreams. If it is set, Upstreams is ignored.
	All bool
	// Endpoints are the URLs of the caches whose configuration is removed, as in RegistryStatus. A
	// hosts.toml of gardener-node-agent that refers to one of them is also removed.
	Endpoints []string
}

// DaemonSet returns the DaemonSet that runs the task on every node that can run pods. The image
// must contain the command registry-cache. A task needs upstreams, unless All is set.
func DaemonSet(task Task, image string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:        v1alpha3.CleanerDaemonSet,
			Namespace:   metav1.NamespaceSystem,
			Labels:      Labels(),
			Annotations: map[string]string{resourcesv1alpha1.FinalizeDeletionAfter: finalizeAfter},
		},
		Spec: appsv1.DaemonSetSpec{
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: Labels()},
			// Start a new task on all nodes at once. With the default, a single unavailable pod would block
			// the update of all other pods.
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString("100%"))},
			},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: Labels()}, Spec: podSpec(task, image)},
		},
	}
}

// Labels returns the labels of the DaemonSet and its pods.
func Labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": v1alpha3.CleanerDaemonSet, "app.kubernetes.io/part-of": "registry-cache"}
}

func podSpec(task Task, image string) corev1.PodSpec {
	volumes, mounts := volumes()
	return corev1.PodSpec{
		PriorityClassName:             "system-node-critical", // also starts on a node that is short of disk, memory or pod slots
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(int64(5)),
		// Tainted, cordoned and dedicated nodes pull images as any other node does.
		Tolerations:     []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		InitContainers:  []corev1.Container{cleanContainer(task, image, mounts)},
		// This container keeps the pod running until the DaemonSet is deleted. A running pod means that
		// its node is clean.
		Containers: []corev1.Container{container("pause", image, 65532, "pause")},
		Volumes:    volumes,
	}
}

// cleanContainer returns the init container. It runs as root, because root owns the files and
// systemd accepts requests only from root. It has no capabilities and mounts three host
// directories. Where SELinux is enforced, only the type spc_t lets a container write there.
func cleanContainer(task Task, image string, mounts []corev1.VolumeMount) corev1.Container {
	c := container(cleanName, image, 0, arguments(task)...)
	c.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"}
	c.VolumeMounts = mounts
	return c
}

func container(name, image string, user int64, args ...string) corev1.Container {
	return corev1.Container{
		Name:            name,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            args,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                new(user),
			RunAsNonRoot:             new(user != 0),
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// arguments returns the command line of `registry-cache clean`. It sorts upstreams and endpoints,
// so that equal tasks give equal pods.
func arguments(task Task) []string {
	args := []string{"clean", "--root=" + hostRoot}
	for _, endpoint := range slices.Sorted(slices.Values(task.Endpoints)) {
		args = append(args, "--endpoint="+endpoint)
	}
	if task.All {
		return append(args, "--all")
	}
	for _, upstream := range slices.Sorted(slices.Values(task.Upstreams)) {
		args = append(args, "--upstream="+upstream)
	}
	return args
}

// hostRoot is where the directories of the node are mounted, each at its own path below it.
const hostRoot = "/host"

// volumes returns volumes and mounts of the node's directories. Those of the registry configuration
// and the units are created if missing. The directory of systemd's socket must exist.
func volumes() (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, dir := range []struct {
		name, path string
		kind       corev1.HostPathType
	}{
		{"containerd-config", "/etc/containerd", corev1.HostPathDirectoryOrCreate},
		{"systemd-units", path.Dir(nodeconfig.UnitPath), corev1.HostPathDirectoryOrCreate},
		{"systemd-socket", "/run/systemd", corev1.HostPathDirectory},
	} {
		source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir.path, Type: new(dir.kind)}}
		volumes = append(volumes, corev1.Volume{Name: dir.name, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: dir.name, MountPath: hostRoot + dir.path})
	}
	return volumes, mounts
}
