package cache

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	versionutils "github.com/gardener/gardener/pkg/utils/version"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	portName = "registry-cache"

	// MetricsPortName is the Service port by which the shoot's Prometheus finds the pods of a cache.
	MetricsPortName = "metrics"
)

// Service returns only the Service of the cache; the cache must be as for Objects. It keeps the
// Service of a renamed cache alive under its previous name until all nodes use the new one.
func Service(cache v1alpha3.RegistryCache, shoot Shoot) (*corev1.Service, error) {
	return service(cache, shoot.KubernetesVersion)
}

// service returns the Service whose cluster IP is the endpoint that nodes pull from. It routes
// nodes to a replica in their own zone, if there is one.
func service(cache v1alpha3.RegistryCache, kubernetesVersion string) (*corev1.Service, error) {
	meta := objectMeta(cache.Upstream)
	meta.Name = v1alpha3.ServiceName(&cache)
	meta.Annotations = map[string]string{
		v1alpha3.AnnotationUpstream:  cache.Upstream,
		v1alpha3.AnnotationRemoteURL: *cache.RemoteURL,
	}
	result := &corev1.Service{
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: labels(cache.Upstream),
			Ports: []corev1.ServicePort{
				servicePort(portName, v1alpha3.CachePort, portName),
				servicePort(MetricsPortName, v1alpha3.CacheDebugPort, debugPortName),
			},
		},
	}
	if kubernetesVersion == "" {
		return result, nil
	}
	version, err := semver.NewVersion(versionutils.Normalize(kubernetesVersion))
	if err != nil {
		return nil, fmt.Errorf("parsing the shoot's Kubernetes version %q: %w", kubernetesVersion, err)
	}
	gardenerutils.ReconcileTopologyAwareRoutingSettings(result, true, version)
	return result, nil
}

func servicePort(name string, port int32, target string) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(target)}
}
