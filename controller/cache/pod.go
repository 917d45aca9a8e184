package cache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	containerName   = "registry"
	volumeMountPath = "/var/lib/registry"
	debugPortName   = "debug"

	// nonRoot is the user and group of the registry process. The group owns the volume.
	nonRoot int64 = 65532
)

func podSpec(cache v1alpha3.RegistryCache, shoot Shoot, mounted []mountedObject) corev1.PodSpec {
	volumes, mounts := volumesAndMounts(mounted)
	return corev1.PodSpec{
		PriorityClassName:            "system-cluster-critical",
		AutomountServiceAccountToken: ptr.To(false),
		// Service links would set variables such as REGISTRY_DOCKER_IO_PORT for the Services of all
		// caches. Distribution reads every variable that starts with REGISTRY_ as configuration.
		EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true),
			RunAsUser:    ptr.To(nonRoot),
			RunAsGroup:   ptr.To(nonRoot),
			FSGroup:      ptr.To(nonRoot),
			// With Always, kubelet changes the owner of each file on every start, which is slow on a full
			// volume.
			FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{container(shoot.Image, environment(cache, shoot, mounted), mounts)},
		Volumes:    volumes,
	}
}

// container returns the registry container. It sets args but no command, so that it also works with
// a stock distribution image, whose entrypoint is the registry binary.
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

// healthProbe probes distribution's own health check, which fails when the volume is unusable.
func healthProbe(periodSeconds, failureThreshold int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/debug/health",
			Port: intstr.FromString(debugPortName),
		}},
		PeriodSeconds:    periodSeconds,
		TimeoutSeconds:   3,
		FailureThreshold: failureThreshold,
		SuccessThreshold: 1,
	}
}
