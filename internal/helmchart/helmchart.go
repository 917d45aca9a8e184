// Package helmchart packs Helm charts. It contains no code for a particular chart.
package helmchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Archive returns a Helm chart as a gzipped tar archive, as in the rawChart of a
// ControllerDeployment. The root of the file system is the chart's directory. In the archive, this
// directory is called name. The archive contains neither timestamps nor owners, so the same files
// give the same bytes. Without a Chart.yaml, Archive returns an error.
func Archive(chart fs.FS, name string) ([]byte, error) {
	if _, err := fs.Stat(chart, "Chart.yaml"); err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
	}
	var archive bytes.Buffer
	compressor := gzip.NewWriter(&archive)
	writer := tar.NewWriter(compressor)
	err := fs.WalkDir(chart, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(chart, file)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path.Join(name, file), Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		_, err = writer.Write(data)
		return err
	})
	if err := errors.Join(err, writer.Close(), compressor.Close()); err != nil {
		return nil, fmt.Errorf("pack chart %s: %w", name, err)
	}
	return archive.Bytes(), nil
}
