package image

import (
	"crypto/rand"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// PausePackage is the program that the images of Random run: it waits for SIGTERM.
const PausePackage = "github.com/gardener-extensions/registry-cache/kind/image/pause"

// Pause returns the Binary to build for the first argument of Random.
func Pause() Binary { return Binary{Name: "pause", Package: PausePackage} }

// Random returns an image that a pod can run and whose blobs exist nowhere else. It has the given
// number of layers, each with size bytes of random content, and one small layer with the pause
// program and a random file that makes it unique. A first pull fetches layers+2 blobs (see Blobs).
// layers may be 0. tar adds a few KiB to size.
func Random(pause Built, layers int, size int64) (v1.Image, error) {
	program, err := NewLayer(
		Entry{Path: "/pause", Mode: 0o755, Source: pause.Executable},
		Entry{Path: "/unique", Mode: 0o644, Content: random(32)},
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
		layer, err := NewLayer(Entry{Path: fmt.Sprintf("/random-%d", i), Mode: 0o644, Content: random(size)})
		if err != nil {
			return nil, fmt.Errorf("random image: %w", err)
		}
		all = append(all, layer)
	}
	return all, nil
}

// Blobs returns the digests that a first pull fetches as blobs: the config and each distinct layer.
func Blobs(img v1.Image) ([]v1.Hash, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	seen := map[v1.Hash]bool{}
	digests := []v1.Hash{}
	for _, blob := range append([]v1.Descriptor{manifest.Config}, manifest.Layers...) {
		if !seen[blob.Digest] {
			seen[blob.Digest] = true
			digests = append(digests, blob.Digest)
		}
	}
	return digests, nil
}

// random cannot fail: crypto/rand.Read crashes the program if the system has no randomness.
func random(size int64) []byte {
	content := make([]byte, size)
	rand.Read(content)
	return content
}
