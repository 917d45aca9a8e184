package kind

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// configured is a testbed in a folder of its own.
func configured(t *testing.T, directory string, config *configuration.Testbed) *Testbed {
	t.Helper()
	testbed, err := New(Options{Directory: directory, Configuration: config})
	if err != nil {
		t.Fatal(err)
	}
	return testbed
}

func someAuthority(t *testing.T) *certificate.Authority {
	t.Helper()
	authority, err := certificate.Ensure(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// TestDefaultRendersWhatItAlwaysDid: the golden is older than configurations. A cluster of before is kept only while it holds.
func TestDefaultRendersWhatItAlwaysDid(t *testing.T) {
	testbed := configured(t, t.TempDir(), nil)
	testbed.engine = &engine.Engine{CgroupVersion: 1}
	testbed.nodeImage = "node:1"
	testbed.ca = someAuthority(t)
	got, err := yaml.Marshal(cluster.KindConfig(testbed.shootConfig()))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("cluster/testdata/restricted-host.yaml")
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
	testbed := configured(t, t.TempDir(), config)
	testbed.ca = someAuthority(t)
	got := testbed.shootConfig()
	if got.Workers != 3 || got.IPFamily != cluster.DualStack || got.KubeProxyMode != "iptables" || !got.FeatureGates["A"] ||
		got.Runtime != (cluster.Runtime{TransferService: true, ConfigPath: "/a"}) {
		t.Errorf("got %+v", got)
	}
	for family, want := range map[configuration.IPFamily][]gardencorev1beta1.IPFamily{
		configuration.IPv4:      {gardencorev1beta1.IPFamilyIPv4},
		configuration.IPv6:      {gardencorev1beta1.IPFamilyIPv6},
		configuration.DualStack: {gardencorev1beta1.IPFamilyIPv4, gardencorev1beta1.IPFamilyIPv6},
	} {
		config.Shoot.IPFamily = family
		if got := testbed.ipFamilies(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", family, got)
		}
	}
}

// TestWhatIsWanted: what was asked for, else what Up was told before, else the default.
func TestWhatIsWanted(t *testing.T) {
	directory := t.TempDir()
	three := configuration.Default()
	three.Shoot.Workers = ptr.To(3)

	if got := configured(t, directory, nil).Configuration(); !reflect.DeepEqual(got, configuration.Default()) {
		t.Errorf("without anything: %+v", got)
	}
	first := configured(t, directory, three)
	if _, up, err := first.Plan(); up || err != nil {
		t.Errorf("nothing is there: up %t, %v", up, err)
	}
	if err := first.rememberConfiguration(); err != nil {
		t.Fatal(err)
	}
	// It was interrupted then.
	second := configured(t, directory, nil)
	if got := second.Configuration(); !reflect.DeepEqual(got, three) {
		t.Errorf("after an interruption: %+v", got)
	}
	if err := second.recordConfiguration(t.Context()); err != nil {
		t.Fatal(err)
	}
	if changes, up, err := second.Plan(); len(changes) > 0 || !up || err != nil {
		t.Errorf("changes %v, up %t, %v", changes, up, err)
	}
	changes, up, err := configured(t, directory, configuration.Default()).Plan()
	if err != nil || !up || len(changes) != 1 || changes[0].Field != "shoot.workers" || changes[0].From != "3" {
		t.Errorf("changes %v, up %t, %v", changes, up, err)
	}
	image, err := New(Options{Directory: directory, NodeImage: "kindest/node:v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := image.Configuration(); got.NodeImage != "kindest/node:v1" || *got.Shoot.Workers != 3 {
		t.Errorf("with a node image: %+v", got)
	}
}

// TestUnreadableConfiguration: a file of another version keeps Up from guessing, and nothing else from working.
func TestUnreadableConfiguration(t *testing.T) {
	directory := t.TempDir()
	path := state(filepath.Join(directory, DefaultPrefix)).wantedConfiguration()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("apiVersion: testbed.registry.extensions.gardener.cloud/v2\nkind: Testbed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testbed := configured(t, directory, nil)
	if err := testbed.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "testbed up -f FILE") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	if _, _, err := testbed.Plan(); err == nil {
		t.Error("a plan from a configuration that cannot be read")
	}
	if named := configured(t, directory, configuration.Default()); named.unreadable != nil {
		t.Errorf("with a file that was named: %v", named.unreadable)
	}
}

func TestNextSaysWhatIsCached(t *testing.T) {
	manifest := configuration.Default()
	manifest.Shoot.Manifest, manifest.Upstreams = "/a/shoot.yaml", []configuration.Upstream{{Name: "alpha"}}
	direct := configuration.Default()
	direct.Upstreams = []configuration.Upstream{{Name: "one", Cached: ptr.To(false)}}
	for want, config := range map[string]*configuration.Testbed{
		"pulls of alpha.upstream.test and beta.upstream.test go through the caches as soon as these are ready, pulls of gamma.upstream.test go direct": nil,
		"The testbed is up: pulls of one.upstream.test go direct.\n":                                                                                   direct,
		"The testbed is up: the Shoot is that of ":                                                                                                     manifest,
	} {
		if next := configured(t, t.TempDir(), config).Next(); !strings.Contains(next, want) {
			t.Errorf("want %q in:\n%s", want, next)
		}
	}
}
