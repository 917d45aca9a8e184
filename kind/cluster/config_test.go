package cluster

import (
	"reflect"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

func TestKindConfig(t *testing.T) {
	normal := &engine.Engine{CgroupVersion: 2, SysResource: true}
	tests := []struct {
		golden string
		config Config
	}{
		{"normal-host.yaml", Config{Name: "registry-cache-seed", Image: "node:1", Engine: normal}},
		{"restricted-host.yaml", Config{Name: "registry-cache-shoot", Image: "node:1", Workers: 2,
			Engine: &engine.Engine{CgroupVersion: 1}}},
		{"audited.yaml", Config{Name: "registry-cache-seed", Image: "node:1", Engine: normal,
			Kubeconfig: "/state/seed.kubeconfig", Audited: []string{"system:serviceaccounts:some"}}},
		{"ipv6.yaml", Config{Name: "registry-cache-shoot", Image: "node:1", Workers: 1, IPFamily: IPv6, Engine: normal}},
		{"dual.yaml", Config{Name: "registry-cache-shoot", Image: "node:1", Workers: 3, IPFamily: DualStack,
			FeatureGates: map[string]bool{"SomeGate": false}, Engine: &engine.Engine{CgroupVersion: 1}}},
		{"stock-image.yaml", Config{Name: "registry-cache-shoot", Image: "kindest/node:v1.36.2", StockImage: true, Workers: 2, Engine: normal}},
	}
	for _, tc := range tests {
		t.Run(tc.golden, func(t *testing.T) {
			got, err := yaml.Marshal(KindConfig(tc.config))
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, tc.golden, string(got))
		})
	}
}

func TestFingerprintTellsConfigurationsApart(t *testing.T) {
	base := Config{Name: "a", Image: "node:1", Workers: 2, Engine: &engine.Engine{CgroupVersion: 2, SysResource: true}}
	again := base
	if fingerprint(base) != fingerprint(again) {
		t.Error("equal configurations differ")
	}
	audited := base
	audited.Audited = []string{"one"}
	otherAudit := base
	otherAudit.Audited = []string{"two"}
	if fingerprint(audited) == fingerprint(otherAudit) {
		t.Error("another audit policy gives the same fingerprint")
	}
	elsewhere := audited
	elsewhere.Kubeconfig = "/elsewhere/seed.kubeconfig"
	if fingerprint(audited) != fingerprint(elsewhere) {
		t.Error("a cluster is rebuilt when the repository is moved")
	}
	changed := base
	changed.KubeProxyMode, changed.Runtime = "iptables", Runtime{TransferService: true, ConfigPath: "/some:/where"}
	if fingerprint(base) != fingerprint(changed) {
		t.Error("a cluster is rebuilt for a change that can be applied to a running one")
	}
	explicit := base
	explicit.IPFamily, explicit.KubeProxyMode, explicit.Runtime.ConfigPath = IPv4, "nftables", RegistryConfigDir
	if fingerprint(base) != fingerprint(explicit) {
		t.Error("explicit defaults change the fingerprint: existing testbeds would be rebuilt")
	}
	for name, change := range map[string]func(c *Config){
		"family":  func(c *Config) { c.IPFamily = IPv6 },
		"gate":    func(c *Config) { c.FeatureGates = map[string]bool{"SomeGate": true} },
		"image":   func(c *Config) { c.Image = "node:2" },
		"workers": func(c *Config) { c.Workers = 1 },
		"audit":   func(c *Config) { c.Audited = []string{"one"} },
		"engine":  func(c *Config) { c.Engine = &engine.Engine{CgroupVersion: 1, SysResource: true} },
	} {
		other := base
		change(&other)
		if fingerprint(base) == fingerprint(other) {
			t.Errorf("another %s gives the same fingerprint", name)
		}
	}
}

func TestNodeNames(t *testing.T) {
	want := []string{"a-control-plane", "a-worker", "a-worker2", "a-worker3"}
	if got := nodeNames(Config{Name: "a", Workers: 3}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	roles := KindConfig(Config{Name: "a", Workers: 1}).Nodes
	if len(roles) != 2 || roles[0].Role != v1alpha4.ControlPlaneRole || roles[1].Role != v1alpha4.WorkerRole {
		t.Errorf("roles: %+v", roles)
	}
}
