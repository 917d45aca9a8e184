package kind

import (
	"slices"
	"testing"
)

func TestMissingMirrors(t *testing.T) {
	const alpha, beta = "http://10.96.0.1:5000", "http://10.96.0.2:5000"
	node := func(name string, endpoints ...string) ShootNodeStatus {
		n := ShootNodeStatus{Name: name}
		for _, endpoint := range endpoints {
			n.Mirrors = append(n.Mirrors, MirrorStatus{Hosts: []string{endpoint}})
		}
		return n
	}
	both := []RegistryMapping{{Upstream: "alpha", Endpoint: alpha}, {Upstream: "beta", Endpoint: beta}}
	for name, test := range map[string]struct {
		registries []RegistryMapping
		nodes      []ShootNodeStatus
		want       []string
	}{
		"no caches":               {nodes: []ShootNodeStatus{node("worker")}},
		"no workers":              {registries: both, nodes: []ShootNodeStatus{node("x-control-plane")}},
		"all ask all":             {registries: both, nodes: []ShootNodeStatus{node("x-control-plane"), node("worker", beta, alpha)}},
		"one lacks a cache":       {registries: both, nodes: []ShootNodeStatus{node("worker", alpha, beta), node("worker2", alpha)}, want: []string{"worker2 does not ask " + beta + " for beta"}},
		"one has an old address":  {registries: both[:1], nodes: []ShootNodeStatus{node("worker", beta)}, want: []string{"worker does not ask " + alpha + " for alpha"}},
		"nobody has been told it": {registries: both[:1], nodes: []ShootNodeStatus{node("b"), node("a")}, want: []string{"a does not ask " + alpha + " for alpha", "b does not ask " + alpha + " for alpha"}},
	} {
		t.Run(name, func(t *testing.T) {
			configs := []OperatingSystemConfigStatus{{Purpose: "provision"}, {Purpose: "reconcile", Registries: test.registries}}
			got := missingMirrors(&ShootStatus{OperatingSystemConfigs: configs, Nodes: test.nodes})
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
