package bringup

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

// TestConfigurationPrecedence: the requested configuration comes first, then that of the last Up,
// then the default.
func TestConfigurationPrecedence(t *testing.T) {
	directory := t.TempDir()
	three := configuration.Default()
	three.Shoot.Workers = ptr.To(3)

	if got := kindtest.New(t, kind.Options{Directory: directory}).Config; !reflect.DeepEqual(got, configuration.Default()) {
		t.Errorf("without a configuration: %+v", got)
	}
	first := kindtest.New(t, kind.Options{Directory: directory, Configuration: three})
	if err := first.StoreConfiguration(); err != nil {
		t.Fatal(err)
	}
	second := kindtest.New(t, kind.Options{Directory: directory})
	if got := second.Config; !reflect.DeepEqual(got, three) {
		t.Errorf("after an Up: %+v", got)
	}
	image, err := kind.New(kind.Options{Directory: directory, NodeImage: "kindest/node:v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := image.Config; got.NodeImage != "kindest/node:v1" || *got.Shoot.Workers != 3 {
		t.Errorf("with a node image: %+v", got)
	}
	garden := kindtest.New(t, kind.Options{Directory: directory, Garden: ptr.To(true)})
	if got := garden.Config; !got.Garden || *got.Shoot.Workers != 3 || second.Config.Garden {
		t.Errorf("with a garden: %+v", got)
	}
	if err := garden.StoreConfiguration(); err != nil {
		t.Fatal(err)
	}
	if !kindtest.New(t, kind.Options{Directory: directory}).Config.Garden {
		t.Error("later commands do not know the garden")
	}
	if kindtest.New(t, kind.Options{Directory: directory, Garden: ptr.To(false)}).Config.Garden {
		t.Error("the garden cannot be removed")
	}
}

// TestGardenDoesNotFit: Up refuses a garden that does not fit the configuration of the last Up.
func TestGardenDoesNotFit(t *testing.T) {
	directory := t.TempDir()
	dual := configuration.Default()
	dual.Shoot.IPFamily = configuration.DualStack
	if err := kindtest.New(t, kind.Options{Directory: directory, Configuration: dual}).StoreConfiguration(); err != nil {
		t.Fatal(err)
	}
	err := Up(t.Context(), kindtest.New(t, kind.Options{Directory: directory, Garden: ptr.To(true)}))
	if err == nil || !strings.Contains(err.Error(), "shoot.ipFamily: Forbidden") {
		t.Errorf("error %v", err)
	}
}

// TestUnreadableConfiguration: Up must not guess what a file with another apiVersion means.
func TestUnreadableConfiguration(t *testing.T) {
	directory := t.TempDir()
	path := kind.State(filepath.Join(directory, kind.DefaultPrefix)).Configuration()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("apiVersion: testbed.registry.extensions.gardener.cloud/v2\nkind: Testbed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testbed := kindtest.New(t, kind.Options{Directory: directory})
	if err := Up(t.Context(), testbed); err == nil || !strings.Contains(err.Error(), "testbed up -f FILE") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	if err := kindtest.New(t, kind.Options{Directory: directory, Configuration: configuration.Default()}).ConfigurationError(); err != nil {
		t.Errorf("with a given file: %v", err)
	}
}
