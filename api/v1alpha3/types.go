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
	// optionally a port, such as "docker.io", "registry.example.com:5000" or "[2001:db8::1]:5000". No two caches have the
	// same registry, whether its port is given or implied (443, or 80 if remoteURL starts with http://).
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
	// SecretReferenceName names the entry of the Shoot's spec.resources that refers to an immutable Secret with the keys
	// "username" and "password": the credentials that the cache shows to its upstream. They are replaced by another
	// reference, or by an entry that refers to another Secret.
	// +optional
	SecretReferenceName *string `json:"secretReferenceName,omitempty"`
	// CABundleSecretReferenceName names the entry of the Shoot's spec.resources that refers to an immutable Secret with
	// the key "bundle.crt": certificates in PEM of the authorities that the upstream's certificate may be signed by,
	// besides the well-known ones. The cache uses them, and so do nodes when they pull from the upstream itself.
	// +optional
	CABundleSecretReferenceName *string `json:"caBundleSecretReferenceName,omitempty"`
	// Proxy is the proxy that the cache reaches its upstream by.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`
	// HTTP is how the cache serves the nodes.
	// +optional
	HTTP *HTTP `json:"http,omitempty"`
	// HighAvailability runs the cache more than once.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty"`
	// ServiceNameSuffix makes "registry-<suffix>" the name of the Service in the Shoot instead of one that is derived from
	// the upstream. It is a DNS label of at most 54 characters, and no other cache may have a Service of that name.
	// +optional
	ServiceNameSuffix *string `json:"serviceNameSuffix,omitempty"`
}

// Volume is the persistent volume that a cache stores its content in.
type Volume struct {
	// Size is the capacity of the volume. Defaults to 10Gi. It may grow later, if the StorageClass allows that, and never
	// shrink.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// StorageClassName names the StorageClass of the volume. Without it the Shoot's default StorageClass is used. It
	// cannot be changed.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// GarbageCollection configures when cached content is dropped.
type GarbageCollection struct {
	// TTL is the time that a blob stays in the cache, counted from its first pull, as a Go duration such as "168h".
	// 0s keeps content for ever. Defaults to 168h when garbageCollection is not given at all. After 0s it cannot be set
	// to anything else unless the cache is removed and added again: the registry forgets what it would have to collect
	// (distribution#4249).
	TTL metav1.Duration `json:"ttl"`
}

// Proxy is an HTTP proxy for the traffic of a cache to its upstream.
type Proxy struct {
	// HTTPProxy is the URL of the proxy for upstreams with an http URL: <scheme>://<host>[:<port>] with scheme http or https.
	// +optional
	HTTPProxy *string `json:"httpProxy,omitempty"`
	// HTTPSProxy is the URL of the proxy for upstreams with an https URL.
	// +optional
	HTTPSProxy *string `json:"httpsProxy,omitempty"`
	// NoProxy lists what is reached without the proxy, separated by commas: hosts, domains, IP addresses, CIDRs, each
	// optionally with a port. A host stands for the domains below it too; "." or "*." before it, for these only. "*" alone
	// is refused. The networks and the domain of the Shoot are always added.
	// +optional
	NoProxy *string `json:"noProxy,omitempty"`
}

// HTTP configures how a cache serves the nodes.
type HTTP struct {
	// TLS makes the cache serve by HTTPS, with a certificate that nodes trust. Defaults to false.
	// +optional
	TLS bool `json:"tls,omitempty"`
}

// HighAvailability configures how often a cache runs.
type HighAvailability struct {
	// Enabled runs two instances, each with a volume of its own, on different nodes and zones where there are some.
	// Defaults to false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RegistryStatus is the providerStatus of the Extension resource: the caches that run.
type RegistryStatus struct {
	metav1.TypeMeta `json:",inline"`

	// Caches are the running caches, in the order of RegistryConfig.Caches.
	// +optional
	Caches []RegistryCacheStatus `json:"caches,omitempty"`
	// CABundle are the certificates in PEM of the authority of all endpoints with HTTPS; while it is rotated, of the old
	// and the new one. It is missing if no endpoint has HTTPS.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
}

// RegistryCacheStatus describes one running cache.
type RegistryCacheStatus struct {
	// Upstream is RegistryCache.Upstream.
	Upstream string `json:"upstream"`
	// Endpoint is the URL at which nodes reach the cache, such as "http://10.4.246.205:5000"; with TLS it starts with https.
	Endpoint string `json:"endpoint"`
	// RemoteURL is where the cache fetches from.
	RemoteURL string `json:"remoteURL"`
	// UpstreamCABundle are the certificates in PEM that the upstream is verified by, besides the well-known ones: what
	// RegistryCache.CABundleSecretReferenceName leads to.
	// +optional
	UpstreamCABundle *string `json:"upstreamCABundle,omitempty"`
}
