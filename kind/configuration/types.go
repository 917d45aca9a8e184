package configuration

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// APIVersion is the version of the format. Other versions are rejected.
	APIVersion = "testbed.registry.extensions.gardener.cloud/v1alpha1"
	// Kind is the kind of the only document in a file.
	Kind = "Testbed"
)

// Testbed is the content of a file. See SetDefaults for the defaults.
type Testbed struct {
	metav1.TypeMeta `json:",inline"`

	// NodeImage is the reference of a stock kindest/node image, which replaces the one built here.
	NodeImage string `json:"nodeImage,omitempty"`
	// Shoot is the cluster that serves as shoot. The seed has no settings: it has one node and IPv4.
	Shoot Shoot `json:"shoot"`
	// Upstreams are the registries. By default alpha and beta have a cache and gamma has none.
	Upstreams []Upstream `json:"upstreams,omitempty"`
}

// Shoot is the cluster that serves as shoot.
type Shoot struct {
	// Workers is the number of nodes beside the control plane, 1 to 5. The default is 2.
	Workers *int `json:"workers,omitempty"`
	// IPFamily is that of nodes, pods and Services: ipv4 (default), ipv6, or dual with IPv4 first.
	IPFamily IPFamily `json:"ipFamily,omitempty"`
	// KubeProxyMode is nftables (default) or iptables (default with a stock node image).
	KubeProxyMode KubeProxyMode `json:"kubeProxyMode,omitempty"`
	// FeatureGates are those of all Kubernetes components, including the kubelets.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Containerd configures the container runtime of all nodes.
	Containerd Containerd `json:"containerd"`
	// Manifest is the path of a Shoot with its Secrets, as for `testbed shoot apply -f`, relative to
	// the folder of the file. The default is a Shoot with a cache for each cached upstream.
	Manifest string `json:"manifest,omitempty"`
}

// Containerd are settings of containerd.
type Containerd struct {
	// Pull selects the code in containerd that pulls images: local (the default, as on kind's nodes)
	// or transfer, the transfer service, which is the default of containerd 2.1 and later.
	Pull PullPath `json:"pull,omitempty"`
	// ConfigPath is containerd's config_path: folders with hosts.toml files, separated by colons. The
	// default is /etc/containerd/certs.d, which the extension writes to.
	ConfigPath string `json:"configPath,omitempty"`
}

// Upstream is one registry.
type Upstream struct {
	// Name is the first label of its host: in the default testbed, alpha is alpha.upstream.test.
	Name string `json:"name"`
	// Cached reports whether the Shoot has a cache for it (default: true). A manifest forbids it.
	Cached *bool `json:"cached,omitempty"`
}

// IPFamily is the IP family of a cluster.
type IPFamily string

// The IP families.
const (
	IPv4      IPFamily = "ipv4"
	IPv6      IPFamily = "ipv6"
	DualStack IPFamily = "dual"
)

// KubeProxyMode is the mode of kube-proxy.
type KubeProxyMode string

// The modes. IPVS is missing: Kubernetes deprecates it, and it needs a kernel module.
const (
	NFTables KubeProxyMode = "nftables"
	IPTables KubeProxyMode = "iptables"
)

// PullPath is the code in containerd that pulls images.
type PullPath string

// The paths.
const (
	PullLocal    PullPath = "local"
	PullTransfer PullPath = "transfer"
)
