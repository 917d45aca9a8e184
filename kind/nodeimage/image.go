package nodeimage

import (
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

// searchPath is the environment variable PATH of each image. kubeadm's Pod manifests call programs
// without their folder.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// nodeImage returns the image with the archives as layers, the least frequently changed one first.
// Its config is that of kind's base image: the entrypoint starts systemd, the variable `container`
// tells systemd that it runs in a container, and the stop signal makes systemd shut down.
func nodeImage(archives ...string) (v1.Image, error) {
	var layers []v1.Layer
	for _, archive := range archives {
		// Layers are not compressed, since the engine would decompress them at once.
		layer, err := filetree.Layer(types.DockerUncompressedLayer, func() (io.ReadCloser, error) { return os.Open(archive) })
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
	return filetree.Image(config, types.DockerManifestSchema2, types.DockerConfigJSON, layers...)
}

// packedLayer returns a compressed layer for a node's containerd: each node copies it from the
// image to a volume. Nodes unpack it when they start, so it uses zstd, which decompresses fastest.
func packedLayer(archive string) (v1.Layer, error) {
	return tarball.LayerFromFile(archive,
		tarball.WithCompression(compression.ZStd),
		tarball.WithMediaType(types.OCILayerZStd),
		tarball.WithCompressedCaching)
}
