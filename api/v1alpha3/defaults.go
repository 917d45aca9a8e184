package v1alpha3

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultTTL is the time that a blob stays in a cache whose garbage collection is not configured.
const DefaultTTL = 168 * time.Hour

// dockerHub is the upstream whose registry does not answer at its own name: images of docker.io are served by
// dockerHubURL, as containerd and the Docker Engine know it.
const (
	dockerHub    = "docker.io"
	dockerHubURL = "https://registry-1.docker.io"
)

// defaultVolumeSize returns the capacity of a volume whose size is not configured: 10Gi.
func defaultVolumeSize() resource.Quantity {
	return resource.MustParse("10Gi")
}

// defaultRemoteURL returns where a cache fetches from when remoteURL is not configured.
func defaultRemoteURL(upstream string) string {
	if upstream == dockerHub {
		return dockerHubURL
	}
	return "https://" + upstream
}

// SetDefaults fills in every optional field of config that is not set, except the name of the StorageClass, which the
// Shoot's default decides, and takes away the slash that a URL may end in. After it RemoteURL, Volume.Size and
// GarbageCollection of every cache are not nil.
func SetDefaults(config *RegistryConfig) {
	for i := range config.Caches {
		setCacheDefaults(&config.Caches[i])
	}
}

func setCacheDefaults(cache *RegistryCache) {
	if cache.RemoteURL == nil {
		remoteURL := defaultRemoteURL(cache.Upstream)
		cache.RemoteURL = &remoteURL
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
		size := defaultVolumeSize()
		cache.Volume.Size = &size
	}
	if cache.GarbageCollection == nil {
		cache.GarbageCollection = &GarbageCollection{TTL: metav1.Duration{Duration: DefaultTTL}}
	}
}

// withoutSlash gives a URL the one spelling that is compared byte by byte everywhere else. What url points to stays.
func withoutSlash(url *string) *string {
	if url == nil {
		return nil
	}
	short := strings.TrimSuffix(*url, "/")
	return &short
}
