package nodeimage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/google/go-containerregistry/pkg/compression"
)

// plainLayer is an uncompressed layer: the engine on this machine would only decompress it again.
type plainLayer struct {
	file string
	hash v1.Hash
	size int64
}

var _ v1.Layer = plainLayer{}

// newPlainLayer reads the tar archive once to compute its digest.
func newPlainLayer(archive string) (l plainLayer, err error) {
	file, err := os.Open(archive)
	if err != nil {
		return plainLayer{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	h := sha256.New()
	size, err := io.Copy(h, file)
	if err != nil {
		return plainLayer{}, err
	}
	return plainLayer{file: archive, size: size, hash: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}}, nil
}

func (l plainLayer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l plainLayer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l plainLayer) Compressed() (io.ReadCloser, error)   { return os.Open(l.file) }
func (l plainLayer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.file) }
func (l plainLayer) Size() (int64, error)                 { return l.size, nil }
func (l plainLayer) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }

// packedLayer returns a compressed layer for a node's containerd: each node copies it from the
// image to a volume. Nodes unpack it when they start, so it uses zstd, the fastest to decompress.
func packedLayer(archive string) (v1.Layer, error) {
	return tarball.LayerFromFile(archive,
		tarball.WithCompression(compression.ZStd),
		tarball.WithMediaType(types.OCILayerZStd),
		tarball.WithCompressedCaching)
}
