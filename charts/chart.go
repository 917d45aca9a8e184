package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/gardener/gardener/pkg/utils/imagevector"
)

const extensionChart = "registry-cache-extension"

//go:embed all:registry-cache-extension
var files embed.FS

// Extension returns the Helm chart that installs the extension on a seed.
func Extension() fs.FS {
	chart, err := fs.Sub(files, extensionChart)
	if err != nil {
		panic(fmt.Sprintf("the embedded chart has no valid name: %v", err))
	}
	return chart
}

const (
	// ImageRegistryCache is the name of the image that serves a cache.
	ImageRegistryCache = "registry-cache"
	// ImageRegistryCleaner is the name of the image that cleans nodes.
	ImageRegistryCleaner = "registry-cleaner"
)

//go:embed images.yaml
var images []byte

// Images are the references of the images that the extension deploys into shoots.
type Images struct {
	RegistryCache   string
	RegistryCleaner string
}

// LoadImages returns the images of images.yaml. If the environment variable IMAGEVECTOR_OVERWRITE
// is set, it is the path of a file whose images take precedence
// (https://github.com/gardener/gardener/blob/master/docs/deployment/image_vector.md).
func LoadImages() (Images, error) {
	vector, err := imagevector.Read(images)
	if err != nil {
		return Images{}, fmt.Errorf("reading the embedded image vector: %w", err)
	}
	vector, err = imagevector.WithEnvOverride(vector, imagevector.OverrideEnv)
	if err != nil {
		return Images{}, fmt.Errorf("reading the image vector that %s names: %w", imagevector.OverrideEnv, err)
	}
	found, err := imagevector.FindImages(vector, []string{ImageRegistryCache, ImageRegistryCleaner})
	if err != nil {
		return Images{}, fmt.Errorf("looking up the images: %w", err)
	}
	return Images{
		RegistryCache:   found[ImageRegistryCache].String(),
		RegistryCleaner: found[ImageRegistryCleaner].String(),
	}, nil
}

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
		return nil, fmt.Errorf("packing chart %s: %w", name, err)
	}
	return archive.Bytes(), nil
}
