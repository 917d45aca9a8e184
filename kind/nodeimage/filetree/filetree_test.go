package filetree

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// listing returns one line for each file of a tar archive.
func listing(t *testing.T, r io.Reader) []string {
	t.Helper()
	var lines []string
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%c %o %d:%d %s %s%s", h.Typeflag, h.Mode, h.Uid, h.Gid, h.Name, h.Linkname, data)))
	}
}

func TestWrite(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	entries := []Entry{
		Text("/etc/kind/b", "replaced"),
		Executable("/usr/bin/program", source),
		Folder("/tmp", 0o777|fs.ModeSticky),
		Symlink("/bin/sh", "busybox"),
		Text("/etc/kind/b", "data"),
		Folder("/etc/kind", 0o700),
	}
	want := []string{
		"5 755 0:0 bin/",
		"2 777 0:0 bin/sh busybox",
		"5 755 0:0 etc/",
		"5 700 0:0 etc/kind/",
		"0 644 0:0 etc/kind/b data",
		"5 1777 0:0 tmp/",
		"5 755 0:0 usr/",
		"5 755 0:0 usr/bin/",
		"0 755 0:0 usr/bin/program binary",
	}
	var first, second bytes.Buffer
	if err := Write(&first, entries); err != nil {
		t.Fatal(err)
	}
	if err := Write(&second, entries); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of one tree differ")
	}
	if got := listing(t, &first); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWriteNamesTheMissingFile(t *testing.T) {
	err := Write(io.Discard, []Entry{Executable("/usr/bin/program", "/nowhere/program")})
	if err == nil || !strings.Contains(err.Error(), "/usr/bin/program") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestOf(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, fstest.MapFS{"blobs/sha256/1": {Data: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		root string
		want []string
	}{
		{"/", []string{"/blobs", "/blobs/sha256", "/blobs/sha256/1"}},
		{"/var/lib/containerd", []string{"/var/lib/containerd", "/var/lib/containerd/blobs",
			"/var/lib/containerd/blobs/sha256", "/var/lib/containerd/blobs/sha256/1"}},
	}
	for _, tt := range tests {
		t.Run(tt.root, func(t *testing.T) {
			entries, err := Of(dir, tt.root)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, e.Path)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
