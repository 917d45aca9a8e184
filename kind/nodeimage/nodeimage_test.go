package nodeimage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

// fakeDocker creates a docker command that runs the script, and puts it first in PATH.
func fakeDocker(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestLoaded(t *testing.T) {
	tests := []struct {
		name, script string
		loaded       bool
		err          string
	}{
		{"there", "echo sha256:1", true, ""},
		{"absent", "echo '[]'; echo 'Error: No such image: x' >&2; exit 1", false, ""},
		{"absent, newer clients", "echo 'Error response from daemon: no such image: x' >&2; exit 1", false, ""},
		{"no engine", "echo 'Cannot connect to the Docker daemon' >&2; exit 1", false, "asking the Docker Engine for the node image x:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakeDocker(t, tt.script)
			got, err := loaded(t.Context(), "x:1")
			if got != tt.loaded || (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %t, %v; want %t, %q", got, err, tt.loaded, tt.err)
			}
		})
	}
}

func TestLoadStreamsTheImage(t *testing.T) {
	dir := t.TempDir()
	layer := filepath.Join(dir, "layer.tar")
	if err := filetree.WriteFile(layer, []filetree.Entry{filetree.Text("/etc/file", "data")}); err != nil {
		t.Fatal(err)
	}
	image, err := nodeImage(layer)
	if err != nil {
		t.Fatal(err)
	}
	loadedTo := filepath.Join(dir, "loaded.tar")
	fakeDocker(t, `[ "$1" = load ] && cat > `+loadedTo)
	if err := load(t.Context(), "registry-cache-testbed/node:1", image); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(loadedTo)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := strings.Join(listing(t, file), "\n"); !strings.Contains(got, `"RepoTags":["registry-cache-testbed/node:1"]`) {
		t.Errorf("the archive does not name the image:\n%s", got)
	}
}

func TestLoadFails(t *testing.T) {
	image, err := nodeImage()
	if err != nil {
		t.Fatal(err)
	}
	fakeDocker(t, "echo 'no space left on device' >&2; exit 1")
	err = load(t.Context(), "registry-cache-testbed/node:1", image)
	for _, want := range []string{"loading the node image registry-cache-testbed/node:1", "no space left on device"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestEnsureDoesNotBuildALoadedImage(t *testing.T) {
	fakeDocker(t, "[ \"$1\" = image ]")
	got, err := Ensure(t.Context(), Options{})
	if err != nil || !strings.HasPrefix(got, "registry-cache-testbed/node:") {
		t.Errorf("got %q, %v", got, err)
	}
}
