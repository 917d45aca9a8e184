package cluster

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/gardener/gardener/pkg/utils"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// RegistryConfigDir is the directory in which containerd on every node looks for hosts.toml files.
const RegistryConfigDir = "/etc/containerd/certs.d"

// Config describes a cluster.
type Config struct {
	Name         string                   // its containers are <Name>-control-plane, <Name>-worker, <Name>-worker2, ...
	Image        string                   // of the nodes
	StockImage   bool                     // Image is a kindest/node image, whose own CNI plugin and StorageClass are kept
	Workers      int                      // the number of worker nodes; with none, pods run on the control plane
	IPFamily     v1alpha4.ClusterIPFamily // of nodes, pods and Services
	FeatureGates map[string]bool          // of all Kubernetes components
	// KubeProxyMode is nftables by default, or iptables with a stock image.
	KubeProxyMode v1alpha4.ProxyMode
	// TransferService makes containerd pull with its transfer service.
	TransferService bool
	ConfigPath      string         // where containerd looks for hosts.toml; defaults to RegistryConfigDir
	Kubeconfig      string         // the path of the kubeconfig for this machine, which is overwritten
	Engine          *engine.Engine // runs the nodes
	Agent           string         // the path of nodeexec-agent on this machine, which Ensure installs on the nodes
	CA              []byte         // a PEM certificate that the nodes trust in addition to Debian's
	Audited         []string       // the user groups whose requests the API server logs, see AuditLog; if empty, it writes no log
	Content         string         // identifies what is installed; the cluster is rebuilt if it changes
}

// KindConfig returns the configuration for kind, with the settings for restricted hosts if the
// engine's host needs them.
func KindConfig(c Config) *v1alpha4.Cluster {
	config := &v1alpha4.Cluster{
		TypeMeta:                v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Name:                    c.Name,
		Nodes:                   []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: c.Image}},
		KubeadmConfigPatches:    append(frugalPatches(), kubeletPatch()),
		ContainerdConfigPatches: containerdPatches(c),
	}
	for range c.Workers {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, Image: c.Image})
	}
	if len(c.Audited) > 0 {
		config.KubeadmConfigPatches = append(config.KubeadmConfigPatches, auditPatch())
		config.Nodes[0].ExtraMounts = []v1alpha4.Mount{{HostPath: auditDir(c), ContainerPath: auditPolicyDir, Readonly: true}}
	}
	if !c.StockImage {
		config.Networking.DisableDefaultCNI = true // kind's CNI plugin is not available as a Go module
		config.Networking.KubeProxyMode = v1alpha4.NFTablesProxyMode
	}
	if c.KubeProxyMode != "" {
		config.Networking.KubeProxyMode = c.KubeProxyMode
	}
	config.Networking.IPFamily = c.IPFamily
	if c.IPFamily == v1alpha4.IPv6Family {
		// The API server listens on all addresses of its node, so the engine need not publish IPv6 ports.
		config.Networking.APIServerAddress = "127.0.0.1"
	}
	config.FeatureGates = map[string]bool{}
	maps.Copy(config.FeatureGates, c.FeatureGates)
	if restricted(c) {
		// The kubelet then continues if it cannot set hard limits, a negative oom_score_adj or some
		// sysctls.
		config.FeatureGates["KubeletInUserNamespace"] = true
	}
	return config
}

// restricted reports whether nodes lack CAP_SYS_RESOURCE.
func restricted(c Config) bool {
	return c.Engine != nil && !c.Engine.SysResource
}

// kubeletPatch returns a patch that makes nodes pull images in parallel and with high limits. The
// kubelet's defaults, one image at a time and five pulls a second, would dominate what scenarios
// measure. To save CPU time, the kubelet does not measure the disk usage of pods.
func kubeletPatch() string {
	return mustYAML(map[string]any{
		"apiVersion":          "kubelet.config.k8s.io/v1beta1",
		"kind":                "KubeletConfiguration",
		"serializeImagePulls": false,
		"registryPullQPS":     50,
		"registryBurst":       100,

		"localStorageCapacityIsolation": false,
		"failCgroupV1":                  false, // kubelets since 1.35 refuse cgroup v1 by default
	})
}

func mustYAML(value any) string {
	data, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // strings, numbers and booleans always have a YAML form
	}
	return string(data)
}

// containerdPatches returns the settings for version 2 and for version 3 of containerd's
// configuration. kind applies those for the version of the file in the node image.
func containerdPatches(c Config) []string {
	const v2, v3 = `"io.containerd.grpc.v1.cri"`, `"io.containerd.cri.v1.%s"`
	folders := cmp.Or(c.ConfigPath, RegistryConfigDir)
	patches := []string{
		fmt.Sprintf("version = 2\n[plugins.%s.registry]\n  config_path = %q\n", v2, folders),
		fmt.Sprintf("version = 3\n[plugins."+v3+".registry]\n  config_path = %q\n", "images", folders),
	}
	if !c.StockImage {
		// Nothing in the testbed reads containerd's statistics. Their default intervals, 10s for images
		// and 1s for containers, cost a tenth of an idle testbed's CPU time.
		patches = append(patches, fmt.Sprintf("version = 2\n[plugins.%s]\n  stats_collect_period = 3600\n[plugins."+v3+"]\n"+
			"  stats_collect_period = \"1h\"\n", v2, "runtime"))
	}
	if c.TransferService { // which does not support kind's setting discard_unpacked_layers
		patches = append(patches,
			fmt.Sprintf("version = 2\n[plugins.%s.containerd]\n  discard_unpacked_layers = false\n", v2),
			fmt.Sprintf("version = 3\n[plugins."+v3+"]\n  discard_unpacked_layers = false\n  use_local_image_pull = false\n", "images"))
	}
	if restricted(c) {
		patches = append(patches,
			fmt.Sprintf("version = 2\n[plugins.%s]\n  restrict_oom_score_adj = true\n", v2),
			fmt.Sprintf("version = 3\n[plugins."+v3+"]\n  restrict_oom_score_adj = true\n", "runtime"))
	}
	return patches
}

// fingerprint identifies the configuration that a cluster was created from. Ensure rebuilds a
// cluster with another fingerprint. The fingerprint covers the content of the audit policy but not
// its path. Each checkout has its own CA, so Ensure also rebuilds another checkout's cluster.
func fingerprint(c Config) string {
	config := KindConfig(c)
	for i := range config.Nodes {
		config.Nodes[i].ExtraMounts = nil
	}
	return utils.ComputeSHA256Hex([]byte(mustYAML(struct {
		Kind    *v1alpha4.Cluster
		Audited []string `json:",omitempty"`
		Content string   `json:",omitempty"`
		CA      []byte   `json:",omitempty"`
	}{config, c.Audited, c.Content, c.CA})))
}

// nodeNames returns the names that kind gives to the containers, sorted.
func nodeNames(c Config) []string {
	names := []string{c.Name + "-control-plane"}
	for i := range c.Workers {
		name := c.Name + "-worker"
		if i > 0 {
			name = fmt.Sprintf("%s%d", name, i+1)
		}
		names = append(names, name)
	}
	return names
}
