package configuration

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// APIVersion is the version of the format. One that is no longer understood is refused, not guessed.
	APIVersion = "testbed.registry.extensions.gardener.cloud/v1alpha1"
	// Kind is the kind of the one document that a file holds.
	Kind = "Testbed"
)

// Testbed is what a file describes. What it leaves out has a default, see SetDefaults.
type Testbed struct {
	metav1.TypeMeta `json:",inline"`

	// NodeImage is the reference of a stock kindest/node image to use instead of one built here.
	NodeImage string `json:"nodeImage,omitempty"`
	// Shoot is the cluster that serves as shoot. The seed has no settings: it is one node with IPv4.
	Shoot Shoot `json:"shoot"`
	// Upstreams are the registries that run beside the clusters: alpha and beta with a cache and gamma without one by default.
	Upstreams []Upstream `json:"upstreams,omitempty"`
}

// Shoot is the cluster that serves as shoot.
type Shoot struct {
	// Workers is the number of nodes beside the control plane, 1 to 5. The default is 2.
	Workers *int `json:"workers,omitempty"`
	// IPFamily is that of nodes, pods and Services: ipv4 (the default), ipv6, or dual for both, with IPv4 first.
	IPFamily IPFamily `json:"ipFamily,omitempty"`
	// KubeProxyMode is how Services are made: nftables or iptables. The default is nftables, with a stock node image iptables.
	KubeProxyMode KubeProxyMode `json:"kubeProxyMode,omitempty"`
	// FeatureGates are Kubernetes' own, for all of its components and the kubelets.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Containerd is the container runtime of all nodes of the cluster.
	Containerd Containerd `json:"containerd"`
	// Manifest is the path of a Shoot with its Secrets, as for `testbed shoot apply -f`. A relative one starts at the folder of the
	// file. The default is a Shoot with a cache for each upstream that is cached.
	Manifest string `json:"manifest,omitempty"`
}

// Containerd are settings of containerd.
type Containerd struct {
	// Pull says which code of containerd fetches images: local (the default, what kind's nodes use) or transfer, its transfer service,
	// which containerd 2.1 and later use unless a setting keeps them from it.
	Pull PullPath `json:"pull,omitempty"`
	// ConfigPath is the setting of that name: one folder, or several with colons between them, that containerd looks for hosts.toml
	// in. The default is /etc/containerd/certs.d, to which the extension writes.
	ConfigPath string `json:"configPath,omitempty"`
}

// Upstream is one registry.
type Upstream struct {
	// Name is the first label of its host: alpha is alpha.upstream.test in the default testbed.
	Name string `json:"name"`
	// Cached says whether the shoot has a cache for it. The default is true; with a manifest it must not be set.
	Cached *bool `json:"cached,omitempty"`
}

// IPFamily is a cluster's.
type IPFamily string

// The IP families.
const (
	IPv4      IPFamily = "ipv4"
	IPv6      IPFamily = "ipv6"
	DualStack IPFamily = "dual"
)

// KubeProxyMode is how kube-proxy makes Services.
type KubeProxyMode string

// The modes. IPVS is deprecated in Kubernetes and needs a module of the kernel.
const (
	NFTables KubeProxyMode = "nftables"
	IPTables KubeProxyMode = "iptables"
)

// PullPath is the code of containerd that fetches images.
type PullPath string

// The paths.
const (
	PullLocal    PullPath = "local"
	PullTransfer PullPath = "transfer"
)
