package bringup

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
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

// TestDefaultShootConfigIsStable compares with a golden file from before there were configurations.
// Up keeps older clusters only if the result is the same.
func TestDefaultShootConfigIsStable(t *testing.T) {
	testbed := kindtest.Configured(t, t.TempDir(), nil)
	testbed.Engine = &engine.Engine{CgroupVersion: 1}
	testbed.NodeImage = "node:1"
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

func TestShootConfig(t *testing.T) {
	config := configuration.Default()
	config.Shoot.Workers, config.Shoot.IPFamily = ptr.To(3), configuration.DualStack
	config.Shoot.KubeProxyMode, config.Shoot.FeatureGates = configuration.IPTables, map[string]bool{"A": true}
	config.Shoot.Containerd = configuration.Containerd{Pull: configuration.PullTransfer, ConfigPath: "/a"}
	testbed := kindtest.Configured(t, t.TempDir(), config)
	testbed.CA = newCA(t)
	got := shootConfig(testbed)
	if got.Workers != 3 || got.IPFamily != cluster.DualStack || got.KubeProxyMode != "iptables" || !got.FeatureGates["A"] ||
		got.Runtime != (cluster.Runtime{TransferService: true, ConfigPath: "/a"}) {
		t.Errorf("got %+v", got)
	}
}

// TestConfigurationPrecedence: the requested configuration, else that of the last Up, else the
// default.
func TestConfigurationPrecedence(t *testing.T) {
	directory := t.TempDir()
	three := configuration.Default()
	three.Shoot.Workers = ptr.To(3)

	if got := kindtest.Configured(t, directory, nil).Config; !reflect.DeepEqual(got, configuration.Default()) {
		t.Errorf("without a configuration: %+v", got)
	}
	first := kindtest.Configured(t, directory, three)
	if _, up, err := Plan(first); up || err != nil {
		t.Errorf("without a testbed: up %t, %v", up, err)
	}
	if err := storeWantedConfiguration(first); err != nil {
		t.Fatal(err)
	}
	// Now Up was interrupted.
	second := kindtest.Configured(t, directory, nil)
	if got := second.Config; !reflect.DeepEqual(got, three) {
		t.Errorf("after an interruption: %+v", got)
	}
	if err := recordConfiguration(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if changes, up, err := Plan(second); len(changes) > 0 || !up || err != nil {
		t.Errorf("changes %v, up %t, %v", changes, up, err)
	}
	changes, up, err := Plan(kindtest.Configured(t, directory, configuration.Default()))
	if err != nil || !up || len(changes) != 1 || changes[0].Field != "shoot.workers" || changes[0].From != "3" {
		t.Errorf("changes %v, up %t, %v", changes, up, err)
	}
	image, err := kind.New(kind.Options{Directory: directory, NodeImage: "kindest/node:v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := image.Config; got.NodeImage != "kindest/node:v1" || *got.Shoot.Workers != 3 {
		t.Errorf("with a node image: %+v", got)
	}
}

// TestUnreadableConfiguration: Up must not guess what is in a file of another version.
func TestUnreadableConfiguration(t *testing.T) {
	directory := t.TempDir()
	path := kind.State(filepath.Join(directory, kind.DefaultPrefix)).WantedConfiguration()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("apiVersion: testbed.registry.extensions.gardener.cloud/v2\nkind: Testbed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testbed := kindtest.Configured(t, directory, nil)
	if err := Up(t.Context(), testbed); err == nil || !strings.Contains(err.Error(), "testbed up -f FILE") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	if _, _, err := Plan(testbed); err == nil {
		t.Error("Plan succeeded with an unreadable configuration")
	}
	if err := kindtest.Configured(t, directory, configuration.Default()).ConfigurationError(); err != nil {
		t.Errorf("with a given file: %v", err)
	}
}
