package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// RegistryConfigDir is the one directory below which containerd on every node looks for hosts.toml files.
const RegistryConfigDir = "/etc/containerd/certs.d"

// Config says which cluster is wanted.
type Config struct {
	// Name of the cluster; its containers are called <Name>-control-plane, <Name>-worker, <Name>-worker2 and so on.
	Name string
	// Image of the nodes.
	Image string
	// StockImage says that Image is a kindest/node: its own CNI plugin and StorageClass are kept.
	StockImage bool
	// Workers is the number of nodes beside the control plane. With none, pods run on the control plane.
	Workers int
	// IPFamily is IPv4 unless another one is given.
	IPFamily IPFamily
	// FeatureGates are Kubernetes' own, for all of its components.
	FeatureGates map[string]bool
	// KubeProxyMode is what kube-proxy is brought to, also in a cluster that runs: "nftables" or "iptables". Empty: left as it is.
	KubeProxyMode string
	// Runtime are settings of containerd, applied also in a cluster that runs.
	Runtime Runtime
	// Kubeconfig is the path of the file that gives access from this machine; it is overwritten.
	Kubeconfig string
	// Engine is the Docker Engine that runs the nodes.
	Engine *engine.Engine
	// CA is a certificate in PEM that the nodes trust, besides Debian's. Empty: none.
	CA []byte
	// Audited are the groups of users whose requests the API server logs (AuditLog). Empty: there is no log.
	Audited []string
}

// KindConfig returns what kind is told. Settings for restricted hosts are there only if the engine's host needs them.
func KindConfig(c Config) *v1alpha4.Cluster {
	config := &v1alpha4.Cluster{
		TypeMeta:                v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Name:                    c.Name,
		Nodes:                   nodeList(c),
		KubeadmConfigPatches:    []string{kubeletPatch(c)},
		ContainerdConfigPatches: containerdPatches(c),
	}
	if len(c.Audited) > 0 {
		config.KubeadmConfigPatches = append(config.KubeadmConfigPatches, auditPatch())
		config.Nodes[0].ExtraMounts = []v1alpha4.Mount{auditMount(c)}
	}
	if !c.StockImage {
		config.Networking.DisableDefaultCNI = true // kind's own plugin is in no Go module
		config.Networking.KubeProxyMode = v1alpha4.NFTablesProxyMode
	}
	setIPFamily(config, c.IPFamily)
	config.FeatureGates = featureGates(c)
	return config
}

// setIPFamily leaves IPv4 to kind's defaults. The API server of a cluster of IPv6 listens on all addresses of its node, so this
// machine reaches it by IPv4 as any other: the engine need not publish ports for IPv6.
func setIPFamily(config *v1alpha4.Cluster, family IPFamily) {
	switch family {
	case IPv6:
		config.Networking.IPFamily, config.Networking.APIServerAddress = v1alpha4.IPv6Family, "127.0.0.1"
	case DualStack:
		config.Networking.IPFamily = v1alpha4.DualStackFamily
	}
}

// featureGates are those of the configuration, and what a restricted host needs.
func featureGates(c Config) map[string]bool {
	gates := maps.Clone(c.FeatureGates)
	if restricted(c) {
		// The kubelet then tolerates what it may not write: hard limits, a negative oom_score_adj, some sysctls.
		if gates == nil {
			gates = map[string]bool{}
		}
		gates["KubeletInUserNamespace"] = true
	}
	return gates
}

// restricted tells whether nodes lack CAP_SYS_RESOURCE.
func restricted(c Config) bool {
	return c.Engine != nil && !c.Engine.SysResource
}

func nodeList(c Config) []v1alpha4.Node {
	list := []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: c.Image}}
	for range c.Workers {
		list = append(list, v1alpha4.Node{Role: v1alpha4.WorkerRole, Image: c.Image})
	}
	return list
}

// kubeletPatch lets nodes pull images side by side and as fast as a scenario asks for them. The kubelet's defaults, one
// at a time and five a second, would be measured instead of the cache.
func kubeletPatch(c Config) string {
	patch := map[string]any{
		"apiVersion":          "kubelet.config.k8s.io/v1beta1",
		"kind":                "KubeletConfiguration",
		"serializeImagePulls": false,
		"registryPullQPS":     50,
		"registryBurst":       100,
	}
	if c.Engine != nil && c.Engine.CgroupVersion == 1 {
		patch["failCgroupV1"] = false // since 1.35 the kubelet refuses cgroup v1 otherwise
	}
	return mustYAML(patch)
}

func mustYAML(patch map[string]any) string {
	data, err := yaml.Marshal(patch)
	if err != nil {
		panic(err) // a map of strings, numbers and booleans always has a YAML form
	}
	return string(data)
}

// containerdPatches returns the same settings for both versions of containerd's configuration; kind applies the one
// that the image's file is of.
func containerdPatches(c Config) []string {
	const v2, v3 = `"io.containerd.grpc.v1.cri"`, `"io.containerd.cri.v1.%s"`
	patches := []string{
		fmt.Sprintf("version = 2\n[plugins.%s.registry]\n  config_path = %q\n", v2, RegistryConfigDir),
		fmt.Sprintf("version = 3\n[plugins."+v3+".registry]\n  config_path = %q\n", "images", RegistryConfigDir),
	}
	if restricted(c) {
		patches = append(patches,
			fmt.Sprintf("version = 2\n[plugins.%s]\n  restrict_oom_score_adj = true\n", v2),
			fmt.Sprintf("version = 3\n[plugins."+v3+"]\n  restrict_oom_score_adj = true\n", "runtime"))
	}
	return patches
}

// fingerprint tells two configurations apart: a cluster that was created by another one is built again. What the audit
// policy says counts, and not where it lies on this machine. What is applied to a cluster that runs does not count.
func fingerprint(c Config) string {
	config := KindConfig(c)
	for i := range config.Nodes {
		config.Nodes[i].ExtraMounts = nil
	}
	data, err := yaml.Marshal(struct {
		Kind    *v1alpha4.Cluster
		Audited []string `json:",omitempty"`
	}{config, c.Audited})
	if err != nil {
		panic(err) // made of strings, numbers, booleans
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
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
