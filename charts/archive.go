package charts

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
// ControllerDeployment. The root of the file system is the chart's directory. name is the name of
// its folder in the archive. The archive contains no timestamps and owners, so the same files give
// the same bytes. It returns an error if there is no Chart.yaml.
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
		return addFile(writer, chart, file, path.Join(name, file))
	})
	if err := errors.Join(err, writer.Close(), compressor.Close()); err != nil {
		return nil, fmt.Errorf("packing chart %s: %w", name, err)
	}
	return archive.Bytes(), nil
}

func addFile(writer *tar.Writer, chart fs.FS, file, name string) error {
	data, err := fs.ReadFile(chart, file)
	if err != nil {
		return err
	}
	if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = writer.Write(data)
	return err
}
