package original

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// NetworkPolicy is the name of the original's only NetworkPolicy in the shoot.
const NetworkPolicy = "gardener.cloud--allow-registry-cache"

const (
	port, debugPort = 5000, 5001
	portName        = "registry-cache"
	debugPortName   = "debug"
	nonRoot         = int64(65532)
	// podLabel selects the pods of all caches in NetworkPolicy.
	podLabel, podLabelValue = "app.kubernetes.io/name", "registry-cache"
)

// cache contains what the original knows about a cache when it renders the objects.
type cache struct {
	v1alpha3.RegistryCache
	address string         // the cluster IP of its Service, empty if unknown
	secret  *corev1.Secret // the certificate of the secrets manager, nil without TLS
}

// hostLabel returns the value of the label upstream-host. A name of more than 43 characters is cut,
// and ends with five digits of its hash.
func (c cache) hostLabel() string {
	const longest, digits = 43, 5
	label := strings.ReplaceAll(c.Upstream, ":", "-")
	if len(label) <= longest {
		return label
	}
	sum := sha256.Sum256([]byte(c.Upstream))
	return label[:longest-digits-1] + "-" + hex.EncodeToString(sum[:])[:digits]
}

func (c cache) name() string { return "registry-" + strings.ReplaceAll(c.hostLabel(), ".", "-") }

func (c cache) serviceName() string {
	if c.ServiceNameSuffix != nil {
		return "registry-" + *c.ServiceNameSuffix
	}
	return c.name()
}

func (c cache) tls() bool { return c.HTTP != nil && c.HTTP.TLS }

func (c cache) scheme() string {
	if c.tls() {
		return "https"
	}
	return "http"
}

func (c cache) labels() map[string]string {
	return map[string]string{v1alpha3.LabelApp: c.name(), v1alpha3.LabelUpstreamHost: c.hostLabel()}
}

func (c cache) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, Labels: c.labels()}
}

func (c cache) replicated() bool { return c.HighAvailability != nil && c.HighAvailability.Enabled }

func (c cache) service() *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: c.meta(c.serviceName()),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: c.labels(),
			Ports: []corev1.ServicePort{
				{Name: portName, Port: port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(portName)},
				{Name: debugPortName, Port: debugPort, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(debugPortName)},
			},
		},
	}
	service.Annotations = map[string]string{
		v1alpha3.AnnotationUpstream: c.Upstream, v1alpha3.AnnotationRemoteURL: *c.RemoteURL, "scheme": c.scheme(),
	}
	return service
}

// objects returns all objects of the cache except its Service.
func (c cache) objects(image string) ([]client.Object, error) {
	secrets := []*corev1.Secret{{
		ObjectMeta: c.meta(c.name() + "-config"), Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"config.yml": []byte(c.configuration())},
	}}
	if c.secret != nil {
		secrets = append(secrets, &corev1.Secret{ObjectMeta: c.meta(c.name() + "-tls"), Type: corev1.SecretTypeOpaque, Data: c.secret.Data})
	}
	var objects []client.Object
	for _, secret := range secrets {
		if err := kubernetesutils.MakeUnique(secret); err != nil {
			return nil, fmt.Errorf("name the Secret %s: %w", secret.Name, err)
		}
		objects = append(objects, secret)
	}
	set := c.statefulSet(image, secrets)
	if err := references.InjectAnnotations(set); err != nil {
		return nil, fmt.Errorf("annotate the StatefulSet %s: %w", set.Name, err)
	}
	objects = append(objects, set)
	if c.replicated() {
		objects = append(objects, &policyv1.PodDisruptionBudget{
			ObjectMeta: c.meta(c.name()),
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: c.labels()},
			},
		})
	}
	return objects, nil
}

// statefulSet returns the StatefulSet of the cache. podManagementPolicy has its default,
// OrderedReady, and serviceName is empty; both are immutable. In a landscape, a webhook of
// gardener-resource-manager sets two replicas for high availability; the testbed has none, so the
// StatefulSet starts with two.
func (c cache) statefulSet(image string, secrets []*corev1.Secret) *appsv1.StatefulSet {
	replicas, meta := int32(1), c.meta(c.name())
	if c.replicated() {
		replicas = 2
		meta.Labels[resourcesv1alpha1.HighAvailabilityConfigType] = resourcesv1alpha1.HighAvailabilityConfigTypeServer
	}
	pod := maps.Clone(c.labels())
	pod[podLabel] = podLabelValue
	pod[v1beta1constants.LabelNetworkPolicyToDNS] = v1beta1constants.LabelNetworkPolicyAllowed
	pod[v1beta1constants.LabelNetworkPolicyToPublicNetworks] = v1beta1constants.LabelNetworkPolicyAllowed
	return &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			Replicas:             &replicas,
			RevisionHistoryLimit: ptr.To[int32](2),
			Selector:             &metav1.LabelSelector{MatchLabels: c.labels()},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod}, Spec: podSpec(image, secrets)},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "cache-volume", Labels: c.labels()},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					StorageClassName: c.Volume.StorageClassName,
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: *c.Volume.Size},
					},
				},
			}},
		},
	}
}

func podSpec(image string, secrets []*corev1.Secret) corev1.PodSpec {
	container := corev1.Container{
		Name:            "registry-cache",
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:           []corev1.ContainerPort{{Name: portName, ContainerPort: port}, {Name: debugPortName, ContainerPort: debugPort}},
		ReadinessProbe:  probe(),
		LivenessProbe:   probe(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "cache-volume", MountPath: "/var/lib/registry"}},
	}
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false),
		// Service links would set variables that distribution reads as its configuration.
		EnableServiceLinks: ptr.To(false),
		PriorityClassName:  "system-cluster-critical",
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(nonRoot), RunAsGroup: ptr.To(nonRoot), FSGroup: ptr.To(nonRoot),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	for i, folder := range []string{"/etc/distribution", "/etc/distribution/certs"}[:len(secrets)] {
		volume := []string{"config-volume", "certs-volume"}[i]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: folder})
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secrets[i].Name, DefaultMode: ptr.To[int32](0o640)},
		}})
	}
	spec.Containers = []corev1.Container{container}
	return spec
}

func probe() *corev1.Probe {
	return &corev1.Probe{
		PeriodSeconds: 5,
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/debug/health", Port: intstr.FromInt32(debugPort)}},
	}
}

// configuration returns distribution's configuration. The testbed's caches have no credentials.
func (c cache) configuration() string {
	config := fmt.Sprintf(`version: "0.1"
storage:
  delete:
    enabled: true
  filesystem:
    rootdirectory: /var/lib/registry
http:
  addr: :%d
  debug:
    addr: :%d
    prometheus:
      enabled: true
      path: /metrics
  draintimeout: 25s
`, port, debugPort)
	if c.tls() {
		config += `  tls:
    certificate: /etc/distribution/certs/tls.crt
    key: /etc/distribution/certs/tls.key
`
	}
	return config + fmt.Sprintf(`health:
  storagedriver:
    enabled: true
    interval: 10s
    threshold: 3
proxy:
  remoteurl: %s
  ttl: %s
`, *c.RemoteURL, c.GarbageCollection.TTL.Duration)
}

// networkPolicy returns the policy that lets anyone connect to both ports of all caches.
func networkPolicy() *networkingv1.NetworkPolicy {
	ports := []networkingv1.NetworkPolicyPort{}
	for _, number := range []int32{port, debugPort} {
		ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(number))})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: NetworkPolicy},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{podLabel: podLabelValue}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: ports}},
		},
	}
}
