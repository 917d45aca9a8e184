package cachetest

import (
	"bytes"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/status"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestStatusWrite(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status status.Testbed
	}{
		{"nothing", status.Testbed{Prefix: "registry-cache", Report: testbedReport{}}},
		{"running", status.Testbed{
			Prefix: "registry-cache",
			Clusters: []status.Cluster{
				{Name: "registry-cache-seed", Role: "seed", Problem: "the API server does not answer"},
				{Name: "registry-cache-shoot", Role: "shoot", Kubeconfig: ".testbed/registry-cache/shoot.kubeconfig", Nodes: []status.Node{
					{Name: "registry-cache-shoot-worker", Ready: true, Report: &nodeReport{Mirrors: []nodeconfig.HostConfig{
						{Upstream: "alpha.upstream.test", Hosts: []string{"http://10.96.0.7:5000"}, Server: "http://alpha.upstream.test", Managed: true},
						{Upstream: "other.test", Hosts: []string{"http://127.0.0.1:1"}, Server: "https://other.test"},
					}, Caches: []nodeconfig.State{
						{Upstream: "alpha.upstream.test", Route: nodeconfig.Mirror, Reason: "http://10.96.0.7:5000 answers"},
						{Upstream: "beta.upstream.test", Route: nodeconfig.Direct, Reason: "http://10.96.0.8:5000 answers 503"},
					}}},
					{Name: "registry-cache-shoot-worker2", Problem: "the node does not run"},
				}},
			},
			Report:    testbedReport{Caches: []cacheStatus{{Upstream: "alpha.upstream.test", Endpoint: "https://10.96.0.7:5000", Ready: true}}},
			Upstreams: []status.Upstream{{Host: "alpha.upstream.test", Running: true, State: "Up 5 minutes", Requests: map[string]int{"cache": 7, "node": 1}}},
			Versions:  map[string]string{"docker": "20.10.24", "kubernetes": "v1.36.4"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tc.status.Write(&out); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "status-"+tc.name+".txt", out.Bytes())
		})
	}
}
