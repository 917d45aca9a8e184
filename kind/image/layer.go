package image

import (
	"crypto/rand"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

// Entry is a file or a directory of a layer.
type Entry = filetree.Entry

// newLayer returns an uncompressed layer with the entries and their parent folders. Its digest
// depends only on the entries: modification times are zero. Clients can pull an uncompressed layer
// with an OCI media type but not with one of Docker's.
func newLayer(entries ...Entry) (v1.Layer, error) {
	return filetree.Layer(types.OCIUncompressedLayer, func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(filetree.Write(writer, entries)) }()
		return reader, nil
	})
}

// PausePackage is the program that images from Random run. The program waits for SIGTERM.
const PausePackage = "github.com/gardener-extensions/registry-cache/kind/image/pause"

// Pause returns the Binary to build for the first argument of Random.
func Pause() Binary { return Binary{Name: "pause", Package: PausePackage} }

// Random returns an image that a pod can run. It consists of the given number of layers, each with
// size random bytes, and one more layer with the pause program and a random file. All blobs are
// unique. A first pull fetches layers+2 blobs. tar adds a few KiB to each layer.
func Random(pause Built, layers int, size int64) (v1.Image, error) {
	program, err := newLayer(
		Entry{Path: "/pause", Mode: 0o755, Source: pause.Executable},
		Entry{Path: "/unique", Mode: 0o644, Content: randomBytes(32)},
	)
	if err != nil {
		return nil, fmt.Errorf("random image: %w", err)
	}
	more, err := randomLayers(layers, size)
	if err != nil {
		return nil, err
	}
	return withConfig(Binary{Name: "pause", Path: "/pause"}, append([]v1.Layer{program}, more...))
}

// Extend appends layers, each with size bytes of random content, to those of base.
func Extend(base v1.Image, layers int, size int64) (v1.Image, error) {
	more, err := randomLayers(layers, size)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(base, more...)
	if err != nil {
		return nil, fmt.Errorf("append layers: %w", err)
	}
	return img, nil
}

func randomLayers(layers int, size int64) ([]v1.Layer, error) {
	var all []v1.Layer
	for i := range layers {
		layer, err := newLayer(Entry{Path: fmt.Sprintf("/random-%d", i), Mode: 0o644, Content: randomBytes(size)})
		if err != nil {
			return nil, fmt.Errorf("random image: %w", err)
		}
		all = append(all, layer)
	}
	return all, nil
}

// randomBytes returns random bytes. It cannot fail: crypto/rand.Read crashes the program instead.
func randomBytes(size int64) []byte {
	content := make([]byte, size)
	rand.Read(content)
	return content
}
