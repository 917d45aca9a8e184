package registry

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"github.com/distribution/reference"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// BenchmarkHit is a stored layer of 64 MiB on its way to a client on the same machine: without the check, with it when the layer
// was checked before, and for the first time after a start.
func BenchmarkHit(b *testing.B) {
	const size = 64 << 20
	disk := filesystem.New(filesystem.DriverParameters{RootDirectory: b.TempDir(), MaxThreads: 100})
	layer := store(b, disk, size)
	checked := newSoundStore(disk)
	for name, next := range map[string]func() driver.StorageDriver{
		"without": func() driver.StorageDriver { return disk },
		"checked": func() driver.StorageDriver { return checked },
		"first":   func() driver.StorageDriver { return newSoundStore(disk) },
	} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := blobs(r.Context(), b, next()).ServeBlob(r.Context(), w, r, layer.Digest); err != nil {
					b.Error(err)
				}
			}))
			server.Config.BaseContext = func(net.Listener) context.Context { return ofRequest{b.Context()} }
			server.Start()
			defer server.Close()
			b.SetBytes(size)
			for b.Loop() {
				response, err := server.Client().Get(server.URL)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, response.Body); n != size || err != nil {
					b.Fatal(n, err)
				}
				_ = response.Body.Close()
			}
		})
	}
}

// store puts random bytes into a registry, and returns what they are there.
func store(b *testing.B, disk driver.StorageDriver, size int) v1.Descriptor {
	b.Helper()
	content := make([]byte, size)
	_, _ = rand.Read(content) // never fails
	stored, err := blobs(b.Context(), b, disk).Put(b.Context(), "application/octet-stream", content)
	if err != nil {
		b.Fatal(err)
	}
	return stored
}

// blobs are those of a repository in a registry that has this store.
func blobs(ctx context.Context, b *testing.B, disk driver.StorageDriver) distribution.BlobStore {
	b.Helper()
	namespace, err := storage.NewRegistry(ctx, disk)
	if err != nil {
		b.Fatal(err)
	}
	name, err := reference.WithName("library/app")
	if err != nil {
		b.Fatal(err)
	}
	repository, err := namespace.Repository(ctx, name)
	if err != nil {
		b.Fatal(err)
	}
	return repository.Blobs(ctx)
}
