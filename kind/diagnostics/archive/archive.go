package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Write packs the folder into <folder>.tar.gz beside it, and returns the path of that file. Paths
// in the archive are relative to the folder. A previous archive is replaced atomically.
func Write(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("pack: %w", err)
	}
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	entries := tar.NewWriter(compressed)
	err = entries.AddFS(os.DirFS(folder))
	if err := errors.Join(err, entries.Close(), compressed.Close()); err != nil {
		return "", fmt.Errorf("pack %s: %w", folder, err)
	}
	path := folder + ".tar.gz"
	return path, file.Replace(path, packed.Bytes(), 0o600)
}
