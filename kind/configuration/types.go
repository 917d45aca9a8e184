package configuration

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// APIVersion is the version of the format. Other versions are rejected.
	APIVersion = "testbed.registry.extensions.gardener.cloud/v1alpha1"
	// Kind is the kind of the one document in a file.
	Kind = "Testbed"
)

// Testbed is the content of a testbed.yaml. See SetDefaults for the defaults.
type Testbed struct {
	metav1.TypeMeta `json:",inline"`

	// NodeImage is the reference of a stock kindest/node image. By default Up builds its own image.
	NodeImage string `json:"nodeImage,omitempty"`
	// Shoot configures the shoot cluster. The seed always has one node and IPv4.
	Shoot Shoot `json:"shoot"`
	// Garden runs Gardener's control plane in the seed. The Shoot is then an object of Gardener's API,
	// and the extension is installed through it. The shoot cluster has the seed's version, and IPv4.
	Garden bool `json:"garden,omitempty"`
	// Upstreams are the registries. By default, alpha and beta have a cache, and gamma has none.
	Upstreams []Upstream `json:"upstreams,omitempty"`
	// Extension is installed instead of the registry cache.
	Extension *Extension `json:"extension,omitempty"`
}

// Extension describes an extension that Up builds and installs. Paths are relative to testbed.yaml.
type Extension struct {
	// Name is the ControllerInstallation's name. The extension runs in namespace extension-<name>.
	Name string `json:"name"`
	// Registration is the path of a file with the extension's ControllerRegistration.
	Registration string `json:"registration"`
	// Chart is the folder of the Helm chart, and Values are the values for the chart.
	Chart  string         `json:"chart"`
	Values map[string]any `json:"values,omitempty"`
	// Images are built from Go programs, and loaded onto the nodes of the seed.
	Images []Image `json:"images,omitempty"`
	// Webhooks are the MutatingWebhookConfigurations that Up waits for.
	Webhooks []string `json:"webhooks,omitempty"`
}

// Image describes an image that contains one Go program.
type Image struct {
	Name string `json:"name"`
	// Package is the import path of the program.
	Package string `json:"package"`
	// Value is the chart value that is set to the reference of the image, for example image.ref.
	Value string `json:"value"`
}

// Shoot configures the shoot cluster.
type Shoot struct {
	// KubernetesVersion is one of KubernetesVersions, 1.36 by default. Gardener does not support 1.37.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Workers is the number of worker nodes, 1 to 5. The default is 2.
	Workers *int `json:"workers,omitempty"`
	// IPFamily applies to nodes, pods and Services: ipv4 (default), ipv6, or dual with IPv4 first.
	IPFamily IPFamily `json:"ipFamily,omitempty"`
	// KubeProxyMode is nftables (default) or iptables (default with a stock node image).
	KubeProxyMode KubeProxyMode `json:"kubeProxyMode,omitempty"`
	// FeatureGates are set on all Kubernetes components, including the kubelets.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Containerd configures the container runtime of all nodes.
	Containerd Containerd `json:"containerd"`
	// Manifest is the path, relative to testbed.yaml, of a file for `testbed shoot apply -f`: a Shoot
	// and its Secrets. Without it, the Shoot has a cache for each cached upstream.
	Manifest string `json:"manifest,omitempty"`
}

// Containerd contains settings of containerd.
type Containerd struct {
	// Version is one of ContainerdVersions, 2.3 by default.
	Version string `json:"version,omitempty"`
	// Pull selects the code in containerd that pulls images: local (the default, as on kind's nodes),
	// or transfer for the transfer service (containerd's own default since 2.1).
	Pull PullPath `json:"pull,omitempty"`
	// ConfigPath is containerd's config_path: folders with hosts.toml files, separated by colons. The
	// default is /etc/containerd/certs.d, which the extension writes to.
	ConfigPath string `json:"configPath,omitempty"`
}

// KubernetesVersions and ContainerdVersions are the minor versions for which the testbed can build
// a node image. The seed always has the default, 1.36 and 2.3.
var (
	KubernetesVersions = []string{"1.34", "1.36", "1.37"}
	ContainerdVersions = []string{"1.7", "2.0", "2.3", "2.4"}
)

// Upstream is an upstream registry.
type Upstream struct {
	// Name is the first label of the host name, for example alpha in alpha.upstream.test.
	Name string `json:"name"`
	// Cached reports whether the Shoot has a cache for the upstream (default: true). Do not set it
	// together with Shoot.Manifest or Extension.
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

// The modes. IPVS is missing, since Kubernetes has deprecated it and it needs a kernel module.
const (
	NFTables KubeProxyMode = "nftables"
	IPTables KubeProxyMode = "iptables"
)

// PullPath selects the code in containerd that pulls images.
type PullPath string

// The values of PullPath.
const (
	PullLocal    PullPath = "local"
	PullTransfer PullPath = "transfer"
)

const (
	// DefaultConfigPath is the folder that the extension writes to.
	DefaultConfigPath = "/etc/containerd/certs.d"
	defaultWorkers    = 2
)

// Default returns the configuration of a testbed without a testbed.yaml.
func Default() *Testbed {
	t := &Testbed{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}}
	t.SetDefaults()
	return t
}

// SetDefaults sets the fields that are not set. The default of KubeProxyMode depends on NodeImage.
func (t *Testbed) SetDefaults() {
	t.Shoot.setDefaults(t.NodeImage != "")
	if t.Upstreams == nil {
		t.Upstreams = []Upstream{{Name: "alpha"}, {Name: "beta"}, {Name: "gamma"}}
		if t.hasCaches() {
			t.Upstreams[2].Cached = ptr.To(false)
		}
	}
	if !t.hasCaches() {
		return
	}
	for i := range t.Upstreams {
		if t.Upstreams[i].Cached == nil {
			t.Upstreams[i].Cached = ptr.To(true)
		}
	}
}

// hasCaches reports whether the configuration determines which upstreams have a cache. A Shoot
// manifest lists the caches itself, and a different extension has none.
func (t *Testbed) hasCaches() bool { return t.Shoot.Manifest == "" && t.Extension == nil }

func (s *Shoot) setDefaults(stockImage bool) {
	if s.Workers == nil {
		s.Workers = ptr.To(defaultWorkers)
	}
	s.IPFamily = cmp.Or(s.IPFamily, IPv4)
	s.KubeProxyMode = cmp.Or(s.KubeProxyMode, defaultMode(stockImage))
	s.Containerd.Pull = cmp.Or(s.Containerd.Pull, PullLocal)
	s.Containerd.ConfigPath = cmp.Or(s.Containerd.ConfigPath, DefaultConfigPath)
}

// WithNodeImage returns a copy with another node image, and without the versions that select a
// built one. If the kube-proxy mode is the current image's default, the copy has the new image's
// default. To set both, use testbed.yaml.
func (t *Testbed) WithNodeImage(reference string) *Testbed {
	changed := *t
	changed.NodeImage, changed.Shoot.KubernetesVersion, changed.Shoot.Containerd.Version = reference, "", ""
	if t.Shoot.KubeProxyMode == defaultMode(t.NodeImage != "") {
		changed.Shoot.KubeProxyMode = defaultMode(reference != "")
	}
	return &changed
}

func defaultMode(stockImage bool) KubeProxyMode {
	if stockImage {
		return IPTables // kind's own default
	}
	return NFTables
}

// Cached returns the names of the upstreams with a cache. It returns none with a Shoot manifest,
// which lists the caches itself, or with a different extension.
func (t *Testbed) Cached() []string {
	return t.upstreams(func(u Upstream) bool { return u.Cached != nil && *u.Cached })
}

// Direct returns the names of the upstreams without a cache, or none in the same cases as Cached.
func (t *Testbed) Direct() []string {
	return t.upstreams(func(u Upstream) bool { return u.Cached != nil && !*u.Cached })
}

func (t *Testbed) upstreams(wanted func(Upstream) bool) []string {
	var all []string
	for _, upstream := range t.Upstreams {
		if wanted(upstream) {
			all = append(all, upstream.Name)
		}
	}
	return all
}
