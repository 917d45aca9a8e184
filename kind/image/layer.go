package image

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Entry is a file or a directory of a layer.
type Entry struct {
	Path    string      // absolute and clean
	Mode    fs.FileMode // the permission bits, and fs.ModeDir for a directory
	Owner   int         // the numeric user and group
	Content []byte      // the content of a file whose Source is empty
	// Source is the path of a file on this machine. The file is read whenever the layer is read.
	Source string
}

// NewLayer returns an uncompressed OCI layer with the entries in the given order. Its digest
// depends only on the entries: modification times are zero.
func NewLayer(entries ...Entry) (v1.Layer, error) {
	l := &layer{entries: entries}
	content, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if l.digest, l.size, err = v1.SHA256(content); err != nil {
		return nil, fmt.Errorf("read layer: %w", err)
	}
	return l, nil
}

// ociScratch returns an empty image with OCI media types, since clients can pull an uncompressed
// layer with an OCI media type but not with one of Docker's.
func ociScratch() v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
}

// layer is a v1.Layer that is packed during each read, so that a 100 MB binary takes no memory.
type layer struct {
	entries []Entry
	digest  v1.Hash
	size    int64
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return l.Uncompressed() }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(writeTar(writer, l.entries)) }()
	return reader, nil
}

func writeTar(w io.Writer, entries []Entry) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		if err := e.write(archive); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	return archive.Close()
}

func (e Entry) write(archive *tar.Writer) error {
	content, size, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	header := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     strings.TrimPrefix(e.Path, "/"),
		Mode:     int64(e.Mode.Perm()),
		Uid:      e.Owner,
		Gid:      e.Owner,
		Size:     size,
		ModTime:  time.Unix(0, 0),
		Format:   tar.FormatPAX,
	}
	if e.Mode.IsDir() {
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	}
	if e.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, content)
	return err
}

func (e Entry) open() (io.ReadCloser, int64, error) {
	if e.Source == "" || e.Mode.IsDir() {
		return io.NopCloser(bytes.NewReader(e.Content)), int64(len(e.Content)), nil
	}
	file, err := os.Open(e.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// PausePackage is the program that images from Random run. The program waits for SIGTERM.
const PausePackage = "github.com/gardener-extensions/registry-cache/kind/image/pause"

// Pause returns the Binary to build for the first argument of Random.
func Pause() Binary { return Binary{Name: "pause", Package: PausePackage} }

// Random returns an image that a pod can run. It has the given number of layers, each with the
// given size of random bytes, and one more with the pause program and a random file. All blobs are
// unique. A first pull fetches layers+2 blobs, see Blobs. tar adds a few KiB to each layer.
func Random(pause Built, layers int, size int64) (v1.Image, error) {
	program, err := NewLayer(
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
		layer, err := NewLayer(Entry{Path: fmt.Sprintf("/random-%d", i), Mode: 0o644, Content: randomBytes(size)})
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

// randomBytes returns random bytes. It cannot fail: crypto/rand.Read crashes the program instead.
func randomBytes(size int64) []byte {
	content := make([]byte, size)
	rand.Read(content)
	return content
}
