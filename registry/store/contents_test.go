package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
)

// TestContentsOfAStockVolume checks that everything is listed despite interrupted uploads of a
// stock image, and that these are removed.
func TestContentsOfAStockVolume(t *testing.T) {
	volume := t.TempDir()
	blob := digest.FromString("content")
	if err := os.WriteFile(filepath.Join(volume, "scheduler-state.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"repositories/a/_uploads/1/data":                                             "half",
		"repositories/b/_uploads/2/startedat":                                        "now",
		"repositories/c/_layers/sha256/" + blob.Encoded() + "/link":                  blob.String(),
		"blobs/sha256/" + blob.Encoded()[:2] + "/" + blob.Encoded() + "/data":        "content",
		"blobs/sha256/ab/abc/data":                                                   "of no digest",
		"repositories/c/_manifests/tags/v1/current/link":                             blob.String(),
		"repositories/c/_manifests/revisions/sha256/" + blob.Encoded() + "/link":     blob.String(),
		"repositories/c/_manifests/tags/v1/index/sha256/" + blob.Encoded() + "/link": blob.String(),
	} {
		file := filepath.Join(volume, "docker/registry/v2", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(volume, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	found, err := s.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if at := found.Blobs[blob]; at == nil || at.Size != int64(len("content")) || len(at.Links) == 0 || len(found.Tags) != 1 || len(found.Blobs) != 1 {
		t.Errorf("found %+v of %d blobs, and tags %v", at, len(found.Blobs), found.Tags)
	}
	for _, repository := range []string{"a", "b"} {
		if _, err := os.Stat(filepath.Join(volume, "docker/registry/v2/repositories", repository, "_uploads")); !os.IsNotExist(err) {
			t.Errorf("uploads of %s: %v", repository, err)
		}
	}
}
