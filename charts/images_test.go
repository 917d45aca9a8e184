package charts

import (
	"os"
	"path/filepath"
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
		t.Error("the cleaner's image was replaced too")
	}
}

func TestLoadImagesRefusesAMissingFile(t *testing.T) {
	t.Setenv(imagevector.OverrideEnv, filepath.Join(t.TempDir(), "absent.yaml"))
	if _, err := LoadImages(); err == nil {
		t.Error("no error")
	}
}
