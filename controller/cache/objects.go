package cache

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const labelApp = "app"

// Shoot is what the objects of a cache depend on, besides the cache itself.
type Shoot struct {
	// Image is the reference of the registry image. It is required.
	Image string
	// KubernetesVersion is the version of the shoot's API server, such as "1.34.2". Without it nodes are not led to the
	// instance of a cache in their own zone.
	KubernetesVersion string
	// Networks are the CIDRs of the shoot's pods, services and nodes: what a cache never reaches by a proxy.
	Networks []string
	// VerticalPodAutoscaler says that the shoot runs the vertical pod autoscaler of autoscaling.k8s.io/v1.
	VerticalPodAutoscaler bool
}

// Secrets are the contents that the references of a cache lead to, and its certificate.
type Secrets struct {
	// Credentials are shown to the upstream. Nil means none.
	Credentials *Credentials
	// CABundle are certificates in PEM that may have signed the upstream's certificate, besides the well-known ones.
	CABundle []byte
	// Certificate is what the cache serves with. It must be there before a cache with http.tls can run.
	Certificate *Certificate
}

// Credentials are those of basic authentication. Every byte may occur in them.
type Credentials struct{ Username, Password []byte }

// Certificate is that of a server, with the certificates of intermediate authorities behind it, and its key, both PEM.
type Certificate struct{ Certificate, PrivateKey []byte }

// Objects returns the objects that serve one upstream in the shoot, all of them in the namespace kube-system. The cache
// must have its defaults set and be valid (v1alpha3.SetDefaults and v1alpha3.Validate). Of a cache with http.tls and no
// certificate only the Service is returned: its cluster IP must be in the certificate.
func Objects(cache v1alpha3.RegistryCache, shoot Shoot, secrets Secrets) ([]client.Object, error) {
	if cache.RemoteURL == nil || cache.Volume == nil || cache.Volume.Size == nil || cache.GarbageCollection == nil {
		return nil, fmt.Errorf("cache of upstream %q has no defaults set", cache.Upstream)
	}
	if shoot.Image == "" {
		return nil, errors.New("no registry image given")
	}
	service, err := service(cache, shoot.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	if ServesTLS(cache) && secrets.Certificate == nil {
		return []client.Object{service}, nil
	}
	files, err := newFiles(cache, secrets)
	if err != nil {
		return nil, err
	}
	set, err := statefulSet(cache, shoot, files)
	if err != nil {
		return nil, err
	}
	objects := append(files.objects(), service, set, networkPolicy(cache))
	if isHighlyAvailable(cache) {
		objects = append(objects, podDisruptionBudget(cache))
	}
	if shoot.VerticalPodAutoscaler {
		objects = append(objects, verticalPodAutoscaler(cache))
	}
	return objects, nil
}

// ServesTLS says whether nodes pull from the cache by HTTPS.
func ServesTLS(cache v1alpha3.RegistryCache) bool {
	return cache.HTTP != nil && cache.HTTP.TLS
}

// labels are the labels of every object of the upstream, and the selector of its pod.
func labels(upstream string) map[string]string {
	return map[string]string{labelApp: v1alpha3.Name(upstream), v1alpha3.LabelUpstreamHost: v1alpha3.HostLabel(upstream)}
}

func objectMeta(upstream string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: v1alpha3.Name(upstream), Namespace: metav1.NamespaceSystem, Labels: labels(upstream)}
}
