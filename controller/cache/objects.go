// Package cache builds the Kubernetes objects of one pull-through cache in the shoot:
// configuration, certificate and CA bundle, Service, StatefulSet with its volume, NetworkPolicy,
// and what high availability and vertical autoscaling need.
//
// All functions are pure. The package does not check the content of referenced Secrets, see
// v1alpha3.ValidateCredentials and v1alpha3.ValidateCABundle.
package cache

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	versionutils "github.com/gardener/gardener/pkg/utils/version"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Shoot contains the properties of a shoot that matter to the objects of a cache.
type Shoot struct {
	// Image is the reference of the registry image. It is required.
	Image string
	// Architectures are the CPU architectures of nodes that can run Image, empty if all can.
	Architectures []string
	// KubernetesVersion is the version of the shoot's API server, such as "1.34.2". It is required.
	KubernetesVersion string
	// Networks are the CIDRs of the shoot's pods, services and nodes. A cache reaches them without a
	// proxy.
	Networks []string
	// VerticalPodAutoscaler is true if the shoot runs the vertical pod autoscaler
	// (autoscaling.k8s.io/v1).
	VerticalPodAutoscaler bool
}

// Secrets holds the content of the Secrets that a cache references, and its server certificate.
type Secrets struct {
	// Credentials authenticate the cache to the upstream. Nil means anonymous.
	Credentials *Credentials
	// AccessKey is for an upstream in Amazon ECR. It is nil if Credentials is set.
	AccessKey *AccessKey
	// CABundle is a bundle of PEM certificates to trust for the upstream, in addition to public
	// CAs.
	CABundle []byte
	// Certificate is the server certificate of the cache. A cache with http.tls cannot run without it.
	Certificate *Certificate
}

// Credentials are a user name and a password for basic authentication. They may contain any byte.
type Credentials struct{ Username, Password []byte }

// AccessKey is an access key of AWS. SessionToken and RoleARN may be empty.
type AccessKey struct {
	ID           binary `yaml:"accesskeyid"`
	Secret       binary `yaml:"secretaccesskey"`
	SessionToken binary `yaml:",omitempty"`
	RoleARN      binary `yaml:",omitempty"`
}

// Certificate holds a server certificate with its intermediate CAs, and its key, both as PEM.
type Certificate struct{ Certificate, PrivateKey []byte }

// Objects returns the objects for one upstream except its Services, all in the namespace
// kube-system. The cache must be defaulted and valid (v1alpha3.SetDefaults and v1alpha3.Validate).
func Objects(cache v1alpha3.RegistryCache, id v1alpha3.Identity, shoot Shoot, secrets Secrets) ([]client.Object, error) {
	if ServesTLS(cache) && secrets.Certificate == nil {
		return nil, fmt.Errorf("cache of upstream %q has no certificate", cache.Upstream)
	}
	mounted := mountedObjects(cache, id, secrets)
	var objects []client.Object
	for _, m := range mounted {
		objects = append(objects, m.object)
	}
	objects = append(objects, statefulSet(cache, id, shoot, mounted), NetworkPolicy(cache, id))
	if isHighlyAvailable(cache) {
		objects = append(objects, podDisruptionBudget(id))
	}
	if shoot.VerticalPodAutoscaler {
		objects = append(objects, verticalPodAutoscaler(id, shoot.KubernetesVersion))
	}
	return objects, nil
}

// Services returns the Services for one upstream, including those with previous names. The
// requirements are those of Objects.
func Services(cache v1alpha3.RegistryCache, id v1alpha3.Identity, shoot Shoot) ([]client.Object, error) {
	version, err := semver.NewVersion(versionutils.Normalize(shoot.KubernetesVersion))
	if err != nil {
		return nil, fmt.Errorf("parse the shoot's Kubernetes version %q: %w", shoot.KubernetesVersion, err)
	}
	current := service(cache, id)
	gardenerutils.ReconcileTopologyAwareRoutingSettings(current, true, version)
	services := []client.Object{current}
	if isHighlyAvailable(cache) {
		services = append(services, peersService(id))
	}
	for _, previous := range id.Previous {
		same := current.DeepCopy()
		same.Name = previous.Name
		services = append(services, same)
	}
	return services, nil
}

// References returns the objects that a running cache may have, except those that the garbage
// collector of gardener-resource-manager deletes. The running cache is was, or nil if it was
// removed. In that case id contains the name of its Service.
func References(id v1alpha3.Identity, was *v1alpha3.RegistryCache) []corev1.ObjectReference {
	reference := func(apiVersion, kind, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: metav1.NamespaceSystem, Name: name}
	}
	references := []corev1.ObjectReference{
		reference("apps/v1", "StatefulSet", id.Name),
		reference("networking.k8s.io/v1", "NetworkPolicy", id.Name),
		reference("policy/v1", "PodDisruptionBudget", id.Name),
		reference("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", id.Name),
		reference("v1", "Service", peersName(id)),
		reference("v1", "PersistentVolumeClaim", ClaimPrefix+id.Name+"-0"),
		reference("v1", "PersistentVolumeClaim", ClaimPrefix+id.Name+"-1"),
	}
	if was != nil && id.HadService(was) {
		references = append(references, reference("v1", "Service", id.ServiceName(was)))
	}
	for _, previous := range id.Previous {
		references = append(references, reference("v1", "Service", previous.Name))
	}
	return references
}

// ServesTLS reports whether nodes pull from the cache over HTTPS.
func ServesTLS(cache v1alpha3.RegistryCache) bool { return cache.HTTP != nil && cache.HTTP.TLS }

// labels returns the labels of all objects of a cache. They also select its pods.
func labels(id v1alpha3.Identity) map[string]string {
	return map[string]string{v1alpha3.LabelApp: id.Name, v1alpha3.LabelUpstreamHost: id.HostLabel}
}

func objectMeta(id v1alpha3.Identity) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: id.Name, Namespace: metav1.NamespaceSystem, Labels: labels(id)}
}

const (
	portName = "registry-cache"

	// DebugPortName is the name of the port of Service and pod for health, which nodes check, and
	// metrics, which the shoot's Prometheus scrapes.
	DebugPortName = "debug"
)

// service returns the Service whose cluster IP is the endpoint that nodes pull from. The Service
// routes a node to a replica in the same zone, if possible.
func service(cache v1alpha3.RegistryCache, id v1alpha3.Identity) *corev1.Service {
	meta := objectMeta(id)
	meta.Name = id.ServiceName(&cache)
	meta.Annotations = map[string]string{
		v1alpha3.AnnotationUpstream:  cache.Upstream,
		v1alpha3.AnnotationRemoteURL: *cache.RemoteURL,
		v1alpha3.AnnotationScheme:    "http",
	}
	if ServesTLS(cache) {
		meta.Annotations[v1alpha3.AnnotationScheme] = "https"
	}
	return &corev1.Service{
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: labels(id),
			Ports:    []corev1.ServicePort{servicePort(portName, v1alpha3.CachePort), servicePort(DebugPortName, v1alpha3.CacheDebugPort)},
		},
	}
}

func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(name)}
}

// NetworkPolicy returns the policy that lets the container runtime and the script of every node
// reach the cache and its health port. From Kubernetes 1.33 on, Gardener denies all traffic in
// kube-system, even between a node and a pod of another node (NetworkPolicy
// gardener.cloud--deny-all). No policy can select nodes: their addresses as a pod sees them depend
// on the network plugin. So both ports are also open to pods; neither exposes secrets.
func NetworkPolicy(cache v1alpha3.RegistryCache, id v1alpha3.Identity) *networkingv1.NetworkPolicy {
	var ports []networkingv1.NetworkPolicyPort
	for _, port := range []int32{v1alpha3.CachePort, v1alpha3.CacheDebugPort} {
		ports = append(ports, networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(port)), Protocol: new(corev1.ProtocolTCP)})
	}
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: objectMeta(id),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: labels(id)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: ports}},
		},
	}
	if isHighlyAvailable(cache) {
		// Replicas reach each other. Gardener's policy gardener.cloud--allow-to-public-networks
		// selects the pods and allows all networks, but with some network plugins an IP block
		// contains no pods. This policy repeats that rule, because it also isolates the pods in
		// clusters without Gardener's.
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
			{PodSelector: &policy.Spec.PodSelector},
			{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}},
			{IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}},
		}}}
	}
	return policy
}
