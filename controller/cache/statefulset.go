package cache

import (
	"slices"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"
	versionutils "github.com/gardener/gardener/pkg/utils/version"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// ClaimPrefix begins the name of a claim, <ClaimPrefix><StatefulSet>-<ordinal>.
	ClaimPrefix = volumeName + "-"
	volumeName  = "cache-volume"

	// finalizeDeletionAfter is how long gardener-resource-manager waits for the pods of a deleted
	// StatefulSet. A pod on a dead node never terminates and would block the deletion of the cache or
	// the Shoot. A pod on a healthy node needs less time than this.
	finalizeDeletionAfter = "90s"
)

// statefulSet returns the StatefulSet whose pods serve the upstream.
func statefulSet(cache v1alpha3.RegistryCache, id v1alpha3.Identity, shoot Shoot, mounted []mountedObject) *appsv1.StatefulSet {
	meta := objectMeta(id)
	meta.Annotations = map[string]string{
		resourcesv1alpha1.FinalizeDeletionAfter: finalizeDeletionAfter,
		// podManagementPolicy and serviceName are immutable, so a StatefulSet of an earlier version is
		// replaced. The new StatefulSet uses the same claims.
		resourcesv1alpha1.DeleteOnInvalidUpdate: "true",
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			// serviceName is empty, as in gardener-extension-registry-cache: nobody needs the DNS names of
			// single pods, and the field is immutable.
			Replicas: new(Replicas(cache)),
			// The default, OrderedReady, never replaces a pod that is not ready. A pod that cannot start
			// because of its image or volume would remain, even after a fix (kubernetes#67250). But that is
			// better than replacing all caches of the original at once.
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			RevisionHistoryLimit: new(int32(2)),
			Selector:             &metav1.LabelSelector{MatchLabels: labels(id)},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels(id)}, Spec: podSpec(cache, shoot, mounted)},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{volumeClaim(cache, id)},
		},
	}
	if id.OrderedReady {
		set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if isHighlyAvailable(cache) {
		makeAvailable(set)
	}
	// The garbage collector of gardener-resource-manager deletes Secrets and ConfigMaps that no
	// annotation references (gardener-extension-registry-cache#363).
	utilruntime.Must(references.InjectAnnotations(set))
	return set
}

// podLabels returns the labels of pods, also those that Gardener's network policies select. These
// let the pod reach DNS and its upstream, and let the shoot's Prometheus reach the pod's metrics
// through the API server proxy. The policy of gardener-extension-registry-cache selects the name.
func podLabels(id v1alpha3.Identity) map[string]string {
	result := labels(id)
	result["app.kubernetes.io/name"] = v1alpha3.ExtensionType
	result[v1beta1constants.LabelNetworkPolicyToDNS] = v1beta1constants.LabelNetworkPolicyAllowed
	result[v1beta1constants.LabelNetworkPolicyToPublicNetworks] = v1beta1constants.LabelNetworkPolicyAllowed
	result[v1beta1constants.LabelNetworkPolicyShootFromSeed] = v1beta1constants.LabelNetworkPolicyAllowed
	return result
}

func volumeClaim(cache v1alpha3.RegistryCache, id v1alpha3.Identity) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName, Labels: labels(id)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: cache.Volume.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *cache.Volume.Size}},
		},
	}
}

const (
	containerName   = "registry-cache"
	volumeMountPath = "/var/lib/registry"

	// nonRoot is the user and group of the registry process. The group owns the volume.
	nonRoot int64 = 65532
)

func podSpec(cache v1alpha3.RegistryCache, shoot Shoot, mounted []mountedObject) corev1.PodSpec {
	volumes, mounts := volumesAndMounts(mounted)
	return corev1.PodSpec{
		PriorityClassName:            "system-cluster-critical",
		AutomountServiceAccountToken: new(false),
		// Service links would set variables such as REGISTRY_DOCKER_IO_PORT for the Services of all
		// caches. Distribution reads every variable that starts with REGISTRY_ as configuration.
		EnableServiceLinks: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true),
			RunAsUser:    new(nonRoot),
			RunAsGroup:   new(nonRoot),
			FSGroup:      new(nonRoot),
			// With Always, kubelet changes the owner of each file on every start, which is slow on a full
			// volume.
			FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Affinity:   nodeAffinity(shoot.Architectures),
		Containers: []corev1.Container{container(shoot.Image, environment(cache, shoot, mounted), mounts)},
		Volumes:    volumes,
	}
}

// nodeAffinity returns the affinity to nodes of the architectures, or nil if none is given.
func nodeAffinity(architectures []string) *corev1.Affinity {
	if len(architectures) == 0 {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: architectures},
		}}},
	}}}
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
			{Name: DebugPortName, ContainerPort: v1alpha3.CacheDebugPort, Protocol: corev1.ProtocolTCP},
		},
		// There is no memory limit: a cache that needs more would be killed during pulls
		// (gardener-extension-registry-cache#395).
		Resources:      corev1.ResourceRequirements{Requests: requests()},
		StartupProbe:   healthProbe(1, 120),
		ReadinessProbe: healthProbe(5, 3),
		LivenessProbe:  healthProbe(20, 6),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: slices.Concat([]corev1.VolumeMount{{Name: volumeName, MountPath: volumeMountPath}}, mounts),
	}
}

func requests() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("50Mi")}
}

// verticalPodAutoscaler returns an autoscaler of the cache's requests, without an upper bound.
func verticalPodAutoscaler(id v1alpha3.Identity, kubernetesVersion string) *vpaautoscalingv1.VerticalPodAutoscaler {
	mode := vpaautoscalingv1.UpdateModeRecreate
	if versionutils.ConstraintK8sGreaterEqual133.CheckVersion(kubernetesVersion) { // these versions resize pods in place by default
		mode = vpaautoscalingv1.UpdateModeInPlaceOrRecreate
	}
	return &vpaautoscalingv1.VerticalPodAutoscaler{
		ObjectMeta: objectMeta(id),
		Spec: vpaautoscalingv1.VerticalPodAutoscalerSpec{
			TargetRef: &autoscalingv1.CrossVersionObjectReference{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: id.Name,
			},
			UpdatePolicy: &vpaautoscalingv1.PodUpdatePolicy{UpdateMode: &mode},
			ResourcePolicy: &vpaautoscalingv1.PodResourcePolicy{
				ContainerPolicies: []vpaautoscalingv1.ContainerResourcePolicy{{
					ContainerName:    containerName,
					ControlledValues: new(vpaautoscalingv1.ContainerControlledValuesRequestsOnly),
					MinAllowed:       corev1.ResourceList{corev1.ResourceMemory: requests()[corev1.ResourceMemory]},
				}},
			},
		},
	}
}

// healthProbe returns a probe of distribution's health check, which detects an unusable volume.
func healthProbe(periodSeconds, failureThreshold int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/debug/health", Port: intstr.FromString(DebugPortName)}},
		PeriodSeconds:    periodSeconds,
		TimeoutSeconds:   3,
		FailureThreshold: failureThreshold,
		SuccessThreshold: 1,
	}
}

// certificateDirs are the directories in which Go looks for CA certificates on Linux, plus the
// directory of the user's CA bundle. SSL_CERT_DIR replaces the list of Go. SSL_CERT_FILE is unset,
// so the CA bundle of the image is still trusted (crypto/x509/root_linux.go).
var certificateDirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs", caBundleDir}

// clusterDomains are reached without a proxy in every shoot. A leading dot matches all names of the
// domain.
var clusterDomains = []string{"localhost", "127.0.0.1", "::1", "kubernetes.default", ".svc", ".cluster.local"}

// environment returns the environment variables of the registry container, among them the proxy
// variables that Go's net/http reads (golang.org/x/net/http/httpproxy). No name may start with
// REGISTRY_: distribution reads such variables as configuration.
func environment(cache v1alpha3.RegistryCache, shoot Shoot, mounted []mountedObject) []corev1.EnvVar {
	// By default, distribution exports traces to localhost and logs an error for each attempt.
	result := []corev1.EnvVar{{Name: "OTEL_TRACES_EXPORTER", Value: "none"}}
	add := func(name, value string) {
		if value != "" {
			result = append(result, corev1.EnvVar{Name: name, Value: value})
		}
	}
	if slices.ContainsFunc(mounted, func(m mountedObject) bool { return m.dir == caBundleDir }) {
		add("SSL_CERT_DIR", strings.Join(certificateDirs, ":"))
	}
	proxy := ptr.Deref(cache.Proxy, v1alpha3.Proxy{})
	http, https := ptr.Deref(proxy.HTTPProxy, ""), ptr.Deref(proxy.HTTPSProxy, "")
	add("HTTP_PROXY", http)
	add("HTTPS_PROXY", https)
	if http != "" || https != "" {
		add("NO_PROXY", noProxy(v1alpha3.NoProxyEntries(&proxy), shoot.Networks))
	}
	return result
}

// noProxy returns the value of NO_PROXY: the shoot's networks and domains, then the user's entries.
func noProxy(userEntries, networks []string) string {
	list := slices.Concat(networks, clusterDomains)
	for _, entry := range userEntries {
		if entry != "" && !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	return strings.Join(list, ",")
}
