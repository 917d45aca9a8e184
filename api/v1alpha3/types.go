package v1alpha3

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RegistryConfig is the providerConfig of a Shoot extension of type registry-cache: the upstream registries that get a
// pull-through cache in the Shoot.
type RegistryConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Caches are the caches to deploy, one for each upstream. At least one is required.
	Caches []RegistryCache `json:"caches"`
}

// RegistryCache asks for the cache of one upstream registry.
type RegistryCache struct {
	// Upstream is the registry as image references name it: a lower-case host (RFC 1123) or an IP literal, and
	// optionally a port, such as "docker.io", "registry.example.com:5000" or "[2001:db8::1]:5000". It is unique in Caches.
	Upstream string `json:"upstream"`
	// RemoteURL is where the cache fetches from: <scheme>://<host>[:<port>] with scheme http or https.
	// Defaults to https://<upstream>, and to https://registry-1.docker.io for the upstream docker.io.
	// +optional
	RemoteURL *string `json:"remoteURL,omitempty"`
	// Volume is the storage of the cache.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
	// GarbageCollection says when cached content is dropped.
	// +optional
	GarbageCollection *GarbageCollection `json:"garbageCollection,omitempty"`
}

// Volume is the persistent volume that a cache stores its content in. It counts when the cache is made: a later change
// has no effect, since the claim of a StatefulSet cannot be changed.
type Volume struct {
	// Size is the capacity of the volume. Defaults to 10Gi.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// StorageClassName names the StorageClass of the volume. Without it the Shoot's default StorageClass is used.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// GarbageCollection configures when cached content is dropped.
type GarbageCollection struct {
	// TTL is the time that a blob stays in the cache, counted from its first pull, as a Go duration such as "168h".
	// 0s keeps content for ever. Defaults to 168h when garbageCollection is not given at all.
	TTL metav1.Duration `json:"ttl"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RegistryStatus is the providerStatus of the Extension resource: the caches that run.
type RegistryStatus struct {
	metav1.TypeMeta `json:",inline"`

	// Caches are the running caches, in the order of RegistryConfig.Caches.
	// +optional
	Caches []RegistryCacheStatus `json:"caches,omitempty"`
}

// RegistryCacheStatus describes one running cache.
type RegistryCacheStatus struct {
	// Upstream is RegistryCache.Upstream.
	Upstream string `json:"upstream"`
	// Endpoint is the URL at which nodes reach the cache, such as "http://10.4.246.205:5000".
	Endpoint string `json:"endpoint"`
	// RemoteURL is where the cache fetches from.
	RemoteURL string `json:"remoteURL"`
}
