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
