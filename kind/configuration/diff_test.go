package configuration

import (
	"reflect"
	"testing"
)

func TestDiff(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"the defaults, spelled out", "shoot: {workers: 2, ipFamily: ipv4}", nil},
		{"workers", "shoot: {workers: 3}", []string{"shoot.workers: 2 → 3 (the shoot cluster is built again)"}},
		{"IP family", "shoot: {ipFamily: ipv6}", []string{"shoot.ipFamily: ipv4 → ipv6 (the shoot cluster is built again)"}},
		{"gates", "shoot: {featureGates: {B: true, A: false}}", []string{"shoot.featureGates: none → A=false, B=true (the shoot cluster is built again)"}},
		{"kube-proxy", "shoot: {kubeProxyMode: iptables}", []string{"shoot.kubeProxyMode: nftables → iptables (the shoot cluster is built again)"}},
		{"containerd", "shoot: {containerd: {pull: transfer, configPath: /a}}", []string{
			"shoot.containerd.pull: local → transfer (the shoot cluster is built again)",
			"shoot.containerd.configPath: /etc/containerd/certs.d → /a (the shoot cluster is built again)",
		}},
		{"upstreams", "upstreams: [{name: alpha}, {name: delta}]", []string{
			"upstreams: alpha, beta, gamma → alpha, delta (in the running testbed)",
			"upstreams[].cached: alpha, beta → alpha, delta (in the running testbed)",
		}},
		{"cached", "upstreams: [{name: alpha, cached: false}, {name: beta, cached: false}, {name: gamma, cached: false}]", []string{
			"upstreams[].cached: alpha, beta → none (in the running testbed)"}},
		{"manifest", "shoot: {manifest: /a.yaml}", []string{
			"shoot.manifest: none → /a.yaml (in the running testbed)", "upstreams[].cached: alpha, beta → none (in the running testbed)"}},
		{"extension", "extension: {name: a, registration: /r.yaml, chart: /c}", []string{
			"extension.name: none → a (both clusters are built again)", "upstreams[].cached: alpha, beta → none (in the running testbed)"}},
		{"node image", "nodeImage: kindest/node:v1", []string{
			"nodeImage: none → kindest/node:v1 (both clusters are built again)", "shoot.kubeProxyMode: nftables → iptables (the shoot cluster is built again)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wanted, err := read(t, header+tc.text+"\n")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, change := range Diff(Default(), wanted) {
				got = append(got, change.String())
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
}
