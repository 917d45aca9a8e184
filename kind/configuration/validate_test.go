package configuration

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"fewest workers", "shoot: {workers: 1}", ""},
		{"most workers", "shoot: {workers: 5}", ""},
		{"no workers", "shoot: {workers: 0}", "shoot.workers: Invalid value: 0: must be 1 to 5"},
		{"too many workers", "shoot: {workers: 6}", "shoot.workers: Invalid value: 6: must be 1 to 5"},
		{"IP family", "shoot: {ipFamily: IPv6}", `shoot.ipFamily: Unsupported value: "IPv6": supported values: "ipv4", "ipv6", "dual"`},
		{"kube-proxy", "shoot: {kubeProxyMode: ipvs}", `shoot.kubeProxyMode: Unsupported value: "ipvs": supported values: "nftables", "iptables"`},
		{"gate", "shoot: {featureGates: {InPlacePodVerticalScaling: true}}", ""},
		{"no gate", "shoot: {featureGates: {'a=b,c': true}}", "shoot.featureGates[a=b,c]: Invalid value"},
		{"the testbed's gate", "shoot: {featureGates: {KubeletInUserNamespace: false}}", "shoot.featureGates[KubeletInUserNamespace]: Forbidden"},
		{"pull", "shoot: {containerd: {pull: remote}}", `shoot.containerd.pull: Unsupported value: "remote": supported values: "local", "transfer"`},
		{"folders", "shoot: {containerd: {configPath: '/etc/containerd/certs.d:/etc/docker/certs.d'}}", ""},
		{"a relative folder", "shoot: {containerd: {configPath: '/etc:certs.d'}}", "shoot.containerd.configPath: Invalid value"},
		{"an empty folder", "shoot: {containerd: {configPath: '/etc:'}}", "shoot.containerd.configPath: Invalid value"},
		{"no upstream", "upstreams: []", "upstreams: Invalid value: 0: must be 1 to 8"},
		{"without a name", "upstreams: [{cached: true}]", "upstreams[0].name: Required value"},
		{"no label", "upstreams: [{name: a.b}]", "upstreams[0].name: Invalid value"},
		{"long", "upstreams: [{name: aaaaaaaaaaaaaaaaaaaaa}]", "upstreams[0].name: Too long"},
		{"twice", "upstreams: [{name: a}, {name: b}, {name: a}]", `upstreams[2].name: Duplicate value: "a"`},
		{"cached beside a manifest", "shoot: {manifest: a.yaml}\nupstreams: [{name: a, cached: false}]", "upstreams[0].cached: Forbidden"},
		{"several mistakes", "shoot: {workers: 9, ipFamily: none}", "[shoot.workers: Invalid value: 9: must be 1 to 5, shoot.ipFamily: Unsupported value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := read(t, header+tc.text+"\n")
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v\nwant one with %s", err, tc.want)
			}
		})
	}
}

// TestStockImageKeepsKindsMode: a stock node image keeps kind's own network and therefore its
// kube-proxy mode.
func TestStockImageKeepsKindsMode(t *testing.T) {
	for text, want := range map[string]KubeProxyMode{
		"": NFTables, "nodeImage: kindest/node:v1.36.2\n": IPTables, "nodeImage: kindest/node:v1.36.2\nshoot: {kubeProxyMode: nftables}\n": NFTables,
	} {
		got, err := read(t, header+text)
		if err != nil || got.Shoot.KubeProxyMode != want {
			t.Errorf("%q: mode %s, %v, want %s", text, got.Shoot.KubeProxyMode, err, want)
		}
	}
}

func TestWithNodeImage(t *testing.T) {
	for _, tc := range []struct {
		text string
		want KubeProxyMode
	}{
		{"", IPTables},
		{"shoot: {kubeProxyMode: iptables}\n", IPTables},
		{"nodeImage: kindest/node:v1\n", IPTables},
		{"nodeImage: kindest/node:v1\nshoot: {kubeProxyMode: nftables}\n", NFTables},
	} {
		read, err := read(t, header+tc.text)
		if err != nil {
			t.Fatal(err)
		}
		got := read.WithNodeImage("kindest/node:v2")
		if got.NodeImage != "kindest/node:v2" || got.Shoot.KubeProxyMode != tc.want || read.NodeImage == got.NodeImage {
			t.Errorf("%q: image %s, mode %s, want %s", tc.text, got.NodeImage, got.Shoot.KubeProxyMode, tc.want)
		}
	}
}
