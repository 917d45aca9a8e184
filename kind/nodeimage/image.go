package nodeimage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// searchPath sets PATH in each image. kubeadm's Pod manifests call programs without their folder.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// nodeImage returns the image with the archives as layers, the least frequently changed one first.
// Its config is that of kind's base image: the entrypoint starts systemd, the variable `container`
// tells systemd that it runs in a container, and the stop signal makes systemd shut down.
func nodeImage(archives ...string) (v1.Image, error) {
	var layers []v1.Layer
	for _, archive := range archives {
		layer, err := newPlainLayer(archive)
		if err != nil {
			return nil, fmt.Errorf("reading the layer %s: %w", archive, err)
		}
		layers = append(layers, layer)
	}
	config := v1.Config{
		Env:        []string{searchPath, "container=docker"},
		Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		StopSignal: "SIGRTMIN+3",
	}
	return imageOf(config, types.DockerManifestSchema2, types.DockerConfigJSON, layers...)
}

// imageOf returns an image for this machine's architecture.
func imageOf(config v1.Config, manifest, configType types.MediaType, layers ...v1.Layer) (v1.Image, error) {
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

// plainLayer is a layer without compression, since the engine would decompress it at once.
type plainLayer struct {
	file string
	hash v1.Hash
	size int64
}

// newPlainLayer reads the tar archive once to compute its digest.
func newPlainLayer(archive string) (plainLayer, error) {
	file, err := os.Open(archive)
	if err != nil {
		return plainLayer{}, err
	}
	hash, size, err := v1.SHA256(file)
	return plainLayer{file: archive, hash: hash, size: size}, errors.Join(err, file.Close())
}

func (l plainLayer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l plainLayer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l plainLayer) Compressed() (io.ReadCloser, error)   { return os.Open(l.file) }
func (l plainLayer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.file) }
func (l plainLayer) Size() (int64, error)                 { return l.size, nil }
func (l plainLayer) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }

// packedLayer returns a compressed layer for a node's containerd: each node copies it from the
// image to a volume. Nodes unpack it when they start, so it uses zstd, which decompresses fastest.
func packedLayer(archive string) (v1.Layer, error) {
	return tarball.LayerFromFile(archive,
		tarball.WithCompression(compression.ZStd),
		tarball.WithMediaType(types.OCILayerZStd),
		tarball.WithCompressedCaching)
}
