package cache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	containerName   = "registry"
	volumeMountPath = "/var/lib/registry"

	// nonRoot is the user and group that the cache runs as and that owns its volume.
	nonRoot int64 = 65532
)

func podSpec(cache v1alpha3.RegistryCache, shoot Shoot, files files) corev1.PodSpec {
	return corev1.PodSpec{
		PriorityClassName:            "system-cluster-critical",
		AutomountServiceAccountToken: ptr.To(false),
		// Service links would set variables such as REGISTRY_DOCKER_IO_PORT for the Services of all caches, and
		// distribution takes every variable that starts with REGISTRY_ for configuration.
		EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true),
			RunAsUser:    ptr.To(nonRoot),
			RunAsGroup:   ptr.To(nonRoot),
			FSGroup:      ptr.To(nonRoot),
			// Changing the owner of each file on a full volume would delay every start of the pod.
			FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{container(shoot.Image, environment(cache, shoot, files), files.mounts())},
		Volumes:    files.volumes(),
	}
}

// container returns the registry's container. It gives arguments and no command, so that a stock distribution image,
// whose entry point is the registry binary, works as well as ours.
func container(image string, environment []corev1.EnvVar, mounts []corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name:            containerName,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"serve", configDir + "/" + configFile},
		Env:             environment,
		Ports: []corev1.ContainerPort{
			{Name: portName, ContainerPort: v1alpha3.CachePort, Protocol: corev1.ProtocolTCP},
			{Name: debugPortName, ContainerPort: v1alpha3.CacheDebugPort, Protocol: corev1.ProtocolTCP},
		},
		Resources:      corev1.ResourceRequirements{Requests: requests()},
		StartupProbe:   healthProbe(1, 120),
		ReadinessProbe: healthProbe(5, 3),
		LivenessProbe:  healthProbe(20, 6),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: slices.Concat([]corev1.VolumeMount{{Name: volumeName, MountPath: volumeMountPath}}, mounts),
	}
}
