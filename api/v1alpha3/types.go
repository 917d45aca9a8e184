package v1alpha3

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RegistryConfig is the providerConfig of a Shoot extension of type registry-cache. It lists the
// upstream registries that get a pull-through cache in the Shoot.
type RegistryConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Caches are the caches to deploy, one per upstream. At least one is required.
	Caches []RegistryCache `json:"caches"`
}

// RegistryCache configures the cache of one upstream registry.
type RegistryCache struct {
	// Upstream is the registry as it is written in image references: a lower-case host name (RFC 1123)
	// or an IP address, with an optional port. Examples: "docker.io", "registry.example.com:5000",
	// "[2001:db8::1]:5000". Each registry can have only one cache. An upstream is the same registry
	// with and without its default port (443, or 80 if remoteURL starts with http://).
	Upstream string `json:"upstream"`
	// RemoteURL is the URL from which the cache fetches: <scheme>://<host>[:<port>] with scheme http
	// or https. The host must not be the pod of the cache itself, as localhost would be. Defaults to
	// https://<upstream>, and to https://registry-1.docker.io for the upstream docker.io.
	// +optional
	RemoteURL *string `json:"remoteURL,omitempty"`
	// Volume configures the storage of the cache.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
	// GarbageCollection configures when cached content is deleted.
	// +optional
	GarbageCollection *GarbageCollection `json:"garbageCollection,omitempty"`
	// SecretReferenceName is the name of an entry in the Shoot's spec.resources that refers to an
	// immutable Secret with the keys "username" and "password". The cache authenticates to its
	// upstream with them. For <account>.dkr.ecr.<region>.amazonaws.com the keys can be "accessKeyID"
	// and "secretAccessKey", and optionally "sessionToken" and "roleARN": the cache gets the password
	// from AWS with them, and renews it. To rotate them, refer to another Secret.
	// +optional
	SecretReferenceName *string `json:"secretReferenceName,omitempty"`
	// CABundleSecretReferenceName is the name of an entry in the Shoot's spec.resources that refers
	// to an immutable Secret with the key "bundle.crt": a PEM bundle of CAs to trust for the
	// upstream, in addition to the system's CAs. The cache uses it, and so do nodes that pull
	// directly from the upstream.
	// +optional
	CABundleSecretReferenceName *string `json:"caBundleSecretReferenceName,omitempty"`
	// Proxy configures the proxy between the cache and its upstream.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`
	// HTTP configures whether the cache serves nodes over HTTP or HTTPS.
	// +optional
	HTTP *HTTP `json:"http,omitempty"`
	// HighAvailability configures the number of instances of the cache.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty"`
	// ServiceNameSuffix makes "registry-<suffix>" the name of the Service in the Shoot. By default the
	// name is derived from the upstream. The suffix is a DNS label of at most 54 characters. No other
	// cache may have a Service of the same name.
	// +optional
	ServiceNameSuffix *string `json:"serviceNameSuffix,omitempty"`
}

// Volume configures the persistent volume of a cache.
type Volume struct {
	// Size is the capacity of the volume, and the most that the cache stores on it, at least 1Mi.
	// Defaults to 10Gi. It can be increased later if the StorageClass allows that. A volume never
	// shrinks: with a smaller size, the cache only stores less.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// StorageClassName is the name of the StorageClass of the volume. Defaults to the Shoot's default
	// StorageClass. It cannot be changed.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// GarbageCollection configures when cached content is deleted.
type GarbageCollection struct {
	// TTL is the time after which a blob is deleted if nobody pulls it, and a tag if the upstream does
	// not confirm it: a Go duration of at least 1s, such as "168h". Defaults to 168h if
	// garbageCollection is not set. 0s keeps both until the volume needs space, and cannot be changed:
	// remove the cache and add it again.
	TTL metav1.Duration `json:"ttl"`
}

// Proxy configures an HTTP proxy for the requests of a cache to its upstream.
type Proxy struct {
	// HTTPProxy is the URL of the proxy for upstreams with an http URL: <scheme>://<host>[:<port>]
	// with scheme http or https.
	// +optional
	HTTPProxy *string `json:"httpProxy,omitempty"`
	// HTTPSProxy is the URL of the proxy for upstreams with an https URL.
	// +optional
	HTTPSProxy *string `json:"httpsProxy,omitempty"`
	// NoProxy is a comma-separated list of destinations that are reached without the proxy: CIDRs,
	// and hosts, domains and IP addresses with an optional port. A host includes its subdomains. A
	// leading "." or "*." matches only the subdomains. "*" alone is rejected. The networks and the
	// domain of the Shoot are always added.
	// +optional
	NoProxy *string `json:"noProxy,omitempty"`
}

// HTTP configures how a cache serves nodes.
type HTTP struct {
	// TLS makes the cache serve HTTPS with a certificate that nodes trust. Defaults to true if http is
	// not set, and to false in "http: {}".
	// +optional
	TLS bool `json:"tls,omitempty"`
}

// HighAvailability configures the number of instances of a cache.
type HighAvailability struct {
	// Enabled runs two instances, each with its own volume, on different nodes and in different zones
	// if possible. Defaults to false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RegistryStatus is the providerStatus of the Extension. It lists the running caches.
type RegistryStatus struct {
	metav1.TypeMeta `json:",inline"`

	// Caches are the running caches, in the order of RegistryConfig.Caches.
	// +optional
	Caches []RegistryCacheStatus `json:"caches,omitempty"`
	// CABundle is the PEM bundle of the CA that signs the certificates of all HTTPS endpoints. During
	// a rotation, it contains the old and the new CA. It is "" if no endpoint uses HTTPS. A status
	// without it was written by gardener-extension-registry-cache.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
}

// RegistryCacheStatus describes one running cache.
type RegistryCacheStatus struct {
	// Upstream is RegistryCache.Upstream.
	Upstream string `json:"upstream"`
	// Endpoint is the URL at which nodes reach the cache, such as "http://10.4.246.205:5000". With TLS
	// the scheme is https.
	Endpoint string `json:"endpoint"`
	// RemoteURL is the URL from which the cache fetches.
	RemoteURL string `json:"remoteURL"`
	// UpstreamCABundle is the content of the Secret that RegistryCache.CABundleSecretReferenceName
	// refers to.
	// +optional
	UpstreamCABundle *string `json:"upstreamCABundle,omitempty"`
}

// GroupName is the API group of the extension.
const GroupName = "registry.extensions.gardener.cloud"

// SchemeGroupVersion is the group and version of every kind in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha3"}

// AddToScheme adds RegistryConfig and RegistryStatus to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &RegistryConfig{}, &RegistryStatus{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
