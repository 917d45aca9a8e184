package cluster

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

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
		{"stock-image.yaml", Config{Name: "registry-cache-shoot", Image: "kindest/node:v1.36.2", StockImage: true, Workers: 2, Engine: normal}},
	}
	for _, tc := range tests {
		t.Run(tc.golden, func(t *testing.T) {
			got, err := yaml.Marshal(KindConfig(tc.config))
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, tc.golden, string(got))
		})
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, got\n%s\nto accept: UPDATE_GOLDEN=1 go test ./kind/cluster", path, got)
	}
}

func TestFingerprintTellsConfigurationsApart(t *testing.T) {
	base := Config{Name: "a", Image: "node:1", Workers: 2, Engine: &engine.Engine{CgroupVersion: 2, SysResource: true}}
	if fingerprint(KindConfig(base)) != fingerprint(KindConfig(base)) {
		t.Error("equal configurations differ")
	}
	for name, change := range map[string]func(c *Config){
		"image":   func(c *Config) { c.Image = "node:2" },
		"workers": func(c *Config) { c.Workers = 1 },
		"engine":  func(c *Config) { c.Engine = &engine.Engine{CgroupVersion: 1, SysResource: true} },
	} {
		other := base
		change(&other)
		if fingerprint(KindConfig(base)) == fingerprint(KindConfig(other)) {
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
