package charts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gardener/gardener/pkg/utils/imagevector"
)

func TestLoadImages(t *testing.T) {
	images, err := LoadImages()
	if err != nil {
		t.Fatal(err)
	}
	if images.RegistryCache == "" || images.RegistryCache != images.RegistryCleaner {
		t.Errorf("images = %+v, want one reference twice", images)
	}
}

func TestLoadImagesOverwritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.yaml")
	content := "images:\n- name: registry-cache\n  ref: registry.test/distribution:3\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(imagevector.OverrideEnv, file)
	images, err := LoadImages()
	if err != nil {
		t.Fatal(err)
	}
	if images.RegistryCache != "registry.test/distribution:3" {
		t.Errorf("the cache's image is %s", images.RegistryCache)
	}
	if images.RegistryCleaner == images.RegistryCache {
		t.Error("the image of the cleaner was also replaced")
	}
}

// TestArchitectures: an overwrite of an image also replaces its architectures, even if it names
// none.
func TestArchitectures(t *testing.T) {
	for name, test := range map[string]struct {
		overwrite, ref string
		architectures  []string
		fails          bool
	}{
		"built in":      {"- {name: etcd, ref: 'r.test/etcd:1'}", "registry.example.org/registry-cache:v0.1.0", nil, false},
		"unknown":       {"- {name: registry-cache, ref: 'r.test/x:1'}", "r.test/x:1", nil, false},
		"one":           {"- {name: registry-cache, ref: 'r.test/x:1', architectures: [arm64]}", "r.test/x:1", []string{"arm64"}, false},
		"both":          {"- {name: registry-cache, ref: 'r.test/x:1', architectures: [arm64, amd64]}", "r.test/x:1", nil, false},
		"only a tag":    {"- {name: registry-cache, repository: r.test/x, architectures: [arm64]}", "r.test/x:v0.1.0", []string{"arm64"}, false},
		"an image each": {"- {name: registry-cache, ref: 'r.test/arm:1', architectures: [arm64]}\n- {name: registry-cache, ref: 'r.test/amd:1', architectures: [amd64]}", "r.test/amd:1", []string{"amd64"}, false},
		"of no worker":  {"- {name: registry-cache, ref: 'r.test/x:1', architectures: [s390x]}", "", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "images.yaml")
			if err := os.WriteFile(file, []byte("images:\n"+test.overwrite+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv(imagevector.OverrideEnv, file)
			images, err := LoadImages()
			if (err != nil) != test.fails {
				t.Fatalf("error %v, want one: %t", err, test.fails)
			}
			if images.RegistryCache != test.ref || !slices.Equal(images.RegistryCacheArchitectures, test.architectures) {
				t.Errorf("image %s for %v, want %s for %v", images.RegistryCache, images.RegistryCacheArchitectures, test.ref, test.architectures)
			}
		})
	}
}

func TestLoadImagesRefusesAMissingFile(t *testing.T) {
	t.Setenv(imagevector.OverrideEnv, filepath.Join(t.TempDir(), "absent.yaml"))
	if _, err := LoadImages(); err == nil {
		t.Error("no error")
	}
}
