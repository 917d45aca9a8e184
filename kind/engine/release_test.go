package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRemoveSandboxes(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"netns/0d9bbac46534", "netns/default", "libnetwork/79cdb894ad2e.sock", "libnetwork/keep", "containerd/containerd.toml"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing left to remove
		if err := removeSandboxes(root); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			left = append(left, path)
		}
		return err
	})
	if want := []string{"containerd/containerd.toml", "libnetwork/keep"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v; want %v", left, err, want)
	}
}
