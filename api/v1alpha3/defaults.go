package v1alpha3

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultTTL is the default of GarbageCollection.TTL if garbageCollection is not set.
const DefaultTTL = 168 * time.Hour

// As containerd and the Docker Engine do, caches fetch images of docker.io from
// registry-1.docker.io.
const (
	dockerHub    = "docker.io"
	dockerHubURL = "https://registry-1.docker.io"
)

func defaultRemoteURL(upstream string) string {
	if upstream == dockerHub {
		return dockerHubURL
	}
	return "https://" + upstream
}

// SetDefaults sets RemoteURL, Volume.Size, GarbageCollection and HTTP of every cache if they are
// nil. Volume.StorageClassName remains nil, which stands for the Shoot's default StorageClass.
// SetDefaults also removes the trailing slash of URLs. As in gardener-extension-registry-cache,
// "http: {}" is plain HTTP, and "garbageCollection: {}" keeps content until space is needed.
func SetDefaults(config *RegistryConfig) {
	for i := range config.Caches {
		cache := &config.Caches[i]
		if cache.RemoteURL == nil {
			cache.RemoteURL = new(defaultRemoteURL(cache.Upstream))
		}
		cache.RemoteURL = withoutSlash(cache.RemoteURL)
		if cache.Proxy != nil {
			cache.Proxy.HTTPProxy = withoutSlash(cache.Proxy.HTTPProxy)
			cache.Proxy.HTTPSProxy = withoutSlash(cache.Proxy.HTTPSProxy)
		}
		if cache.Volume == nil {
			cache.Volume = &Volume{}
		}
		if cache.Volume.Size == nil {
			cache.Volume.Size = new(resource.MustParse("10Gi"))
		}
		if cache.GarbageCollection == nil {
			cache.GarbageCollection = &GarbageCollection{TTL: metav1.Duration{Duration: DefaultTTL}}
		}
		if cache.HTTP == nil {
			cache.HTTP = &HTTP{TLS: true}
		}
	}
}

// withoutSlash returns url without a trailing slash, because URLs are compared byte by byte.
func withoutSlash(url *string) *string {
	if url == nil {
		return nil
	}
	return new(strings.TrimSuffix(*url, "/"))
}
