package filetree

import (
	"fmt"
	"io"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image returns an image for this machine's architecture.
func Image(config v1.Config, manifest, configType types.MediaType, layers ...v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, manifest), configType)
	file, err := base.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	image, err := mutate.ConfigFile(base, file)
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layers...)
}

// Layer returns an uncompressed layer. The function open returns its tar archive. Each read of the
// layer opens the archive again, so that the layer takes no memory.
func Layer(mediaType types.MediaType, open func() (io.ReadCloser, error)) (v1.Layer, error) {
	archive, err := open()
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	l := &layer{open: open, mediaType: mediaType}
	if l.digest, l.size, err = v1.SHA256(archive); err != nil {
		return nil, fmt.Errorf("read layer: %w", err)
	}
	return l, nil
}

type layer struct {
	open      func() (io.ReadCloser, error)
	mediaType types.MediaType
	digest    v1.Hash
	size      int64
}

func (l *layer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return l.open() }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return l.open() }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return l.mediaType, nil }
