package archive

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bundle")
	want := map[string]string{"index.md": "# Bundle\n", "node/journal.txt": "a line\n"}
	for range 2 { // the second archive replaces the first
		for name, content := range want {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		path, err := Write(folder + "/")
		if err != nil || path != folder+".tar.gz" {
			t.Fatalf("path %s, error %v", path, err)
		}
		if got := read(t, path); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		want["second.txt"] = "new\n"
	}
	if _, err := Write(folder + "-missing"); err == nil {
		t.Error("no error for a missing folder")
	}
}

func read(t *testing.T, path string) map[string]string {
	t.Helper()
	opened, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	plain, err := gzip.NewReader(opened)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(plain); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files[header.Name] = string(content)
		}
	}
}
