package bringup

import (
	"os"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

func newCA(t *testing.T) *certificate.CA {
	t.Helper()
	ca, err := certificate.Ensure(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// TestDefaultShootConfigIsStable: the default must equal a golden file. Otherwise Up would rebuild
// existing clusters.
func TestDefaultShootConfigIsStable(t *testing.T) {
	testbed := kindtest.New(t, kind.Options{})
	testbed.Engine = &engine.Engine{}
	testbed.NodeImage, testbed.ShootImage = "seed:1", "node:1"
	testbed.CA = newCA(t)
	got, err := yaml.Marshal(cluster.KindConfig(shootConfig(testbed)))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../cluster/testdata/restricted-host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestGardenConfig: a garden makes Up recreate the seed, and only the seed.
func TestGardenConfig(t *testing.T) {
	for _, with := range []bool{false, true} {
		testbed := kindtest.New(t, kind.Options{Garden: &with})
		testbed.CA = newCA(t)
		want := map[bool]string{true: " with a garden"}[with]
		if got := clusterConfig(testbed, testbed.SeedName(), 0, "").Content; got != want {
			t.Errorf("garden %v: content of the seed %q, want %q", with, got, want)
		}
		if got := shootConfig(testbed).Content; got != "" {
			t.Errorf("garden %v: content of the shoot %q", with, got)
		}
	}
}

func TestShootConfig(t *testing.T) {
	config := configuration.Default()
	config.Shoot.Workers, config.Shoot.IPFamily = ptr.To(3), configuration.DualStack
	config.Shoot.KubeProxyMode, config.Shoot.FeatureGates = configuration.IPTables, map[string]bool{"A": true}
	config.Shoot.Containerd = configuration.Containerd{Pull: configuration.PullTransfer, ConfigPath: "/a"}
	testbed := kindtest.New(t, kind.Options{Configuration: config})
	testbed.CA = newCA(t)
	got := shootConfig(testbed)
	if got.Workers != 3 || got.IPFamily != v1alpha4.DualStackFamily || got.KubeProxyMode != "iptables" || !got.FeatureGates["A"] ||
		!got.TransferService || got.ConfigPath != "/a" {
		t.Errorf("got %+v", got)
	}
}
