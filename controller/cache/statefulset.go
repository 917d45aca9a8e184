package cache

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	volumeName       = "cache-volume"
	volumeMountPath  = "/var/lib/registry"
	configVolumeName = "config"

	// nonRoot is the user and group that the cache runs as and that owns its volume.
	nonRoot int64 = 65532
)

// statefulSet returns the StatefulSet with the one pod that serves the upstream, configured by the named Secret.
func statefulSet(cache v1alpha3.RegistryCache, image, configSecretName string) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{
		ObjectMeta: objectMeta(cache.Upstream),
		Spec: appsv1.StatefulSetSpec{
			ServiceName:          v1alpha3.Name(cache.Upstream),
			Replicas:             ptr.To[int32](1),
			RevisionHistoryLimit: ptr.To[int32](2),
			Selector:             &metav1.LabelSelector{MatchLabels: labels(cache.Upstream)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels(cache.Upstream)},
				Spec:       podSpec(image, configSecretName),
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{volumeClaim(cache)},
		},
	}
	// Without the annotations that name the Secret, the garbage collector of gardener-resource-manager deletes it
	// (gardener-extension-registry-cache#363).
	if err := references.InjectAnnotations(set); err != nil {
		return nil, fmt.Errorf("annotating the StatefulSet of upstream %s: %w", cache.Upstream, err)
	}
	return set, nil
}

// podLabels adds to the labels what lets the pod through the network policies of a shoot's kube-system: to DNS and to
// its upstream.
func podLabels(upstream string) map[string]string {
	result := maps.Clone(labels(upstream))
	result[v1beta1constants.LabelNetworkPolicyToDNS] = v1beta1constants.LabelNetworkPolicyAllowed
	result[v1beta1constants.LabelNetworkPolicyToPublicNetworks] = v1beta1constants.LabelNetworkPolicyAllowed
	return result
}

func volumeClaim(cache v1alpha3.RegistryCache) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName, Labels: labels(cache.Upstream)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: cache.Volume.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: *cache.Volume.Size},
			},
		},
	}
}

func podSpec(image, configSecretName string) corev1.PodSpec {
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
		Containers: []corev1.Container{container(image)},
		Volumes: []corev1.Volume{{
			Name: configVolumeName,
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName:  configSecretName,
				DefaultMode: ptr.To[int32](0o440),
			}},
		}},
	}
}

// container returns the registry's container. It gives arguments and no command, so that a stock distribution image,
// whose entry point is the registry binary, works as well as ours.
func container(image string) corev1.Container {
	return corev1.Container{
		Name:            "registry",
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"serve", configDir + "/" + configFile},
		// distribution exports traces to localhost by default and logs an error for each attempt.
		Env: []corev1.EnvVar{{Name: "OTEL_TRACES_EXPORTER", Value: "none"}},
		Ports: []corev1.ContainerPort{
			{Name: portName, ContainerPort: Port, Protocol: corev1.ProtocolTCP},
			{Name: debugPortName, ContainerPort: DebugPort, Protocol: corev1.ProtocolTCP},
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("20m"),
			corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		StartupProbe:   healthProbe(1, 120),
		ReadinessProbe: healthProbe(5, 3),
		LivenessProbe:  healthProbe(20, 6),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeName, MountPath: volumeMountPath},
			{Name: configVolumeName, MountPath: configDir, ReadOnly: true},
		},
	}
}
