package fetch

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
)

// Storage is a storage middleware of distribution: it returns a driver that tells flights of their files, and keeps nothing of what
// goes past the store. The driver below has to be one of files, such as filesystem.
func (g *Group) Storage(_ context.Context, below driver.StorageDriver) (driver.StorageDriver, error) {
	g.store = below
	return storage{below}, nil
}

type storage struct{ driver.StorageDriver }

// Writer implements storagedriver.StorageDriver. The first file that a flight writes is its blob.
func (s storage) Writer(ctx context.Context, name string, appending bool) (driver.FileWriter, error) {
	if isPast(ctx) {
		return &nowhere{}, nil
	}
	writer, err := s.StorageDriver.Writer(ctx, name, appending)
	f, inFlight := ctx.Value(flightKey{}).(*flight)
	if err != nil || !inFlight {
		return writer, ofStore(err)
	}
	content, err := s.Reader(ctx, name, 0)
	if err != nil {
		_ = writer.Cancel(ctx)
		return nil, ofStore(err)
	}
	readable, isFile := content.(file)
	if !isFile {
		_ = content.Close()
		_ = writer.Cancel(ctx)
		return nil, fmt.Errorf("the storage driver %s has no files: what is being stored cannot be read", s.Name())
	}
	f.update(func() { f.file, f.upload = readable, path.Dir(name) })
	return growing{writer, f}, nil
}

// PutContent implements storagedriver.StorageDriver.
func (s storage) PutContent(ctx context.Context, name string, content []byte) error {
	if isPast(ctx) {
		return nil
	}
	return ofStore(s.StorageDriver.PutContent(ctx, name, content))
}

// Move implements storagedriver.StorageDriver. It is how distribution puts a blob that it has got into its place.
func (s storage) Move(ctx context.Context, source, target string) error {
	return ofStore(s.StorageDriver.Move(ctx, source, target))
}

// ofStore marks an error of the store.
func ofStore(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errStore, err)
}

// growing is a file of which the clients of a flight hear.
type growing struct {
	driver.FileWriter
	flight *flight
}

func (g growing) Write(p []byte) (int, error) {
	n, err := g.FileWriter.Write(p)
	g.flight.grow(p[:n])
	return n, ofStore(err)
}

func (g growing) Commit(ctx context.Context) error { return ofStore(g.FileWriter.Commit(ctx)) }

type flightKey struct{}

func withFlight(ctx context.Context, f *flight) context.Context {
	return context.WithValue(ctx, flightKey{}, f)
}

// sink is the client of whom distribution knows. It takes the header; the body reaches the clients by the file.
type sink struct {
	flight *flight
	header http.Header
}

// Header implements http.ResponseWriter.
func (s *sink) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *sink) WriteHeader(int) {}

// Write implements http.ResponseWriter. It fails where distribution does not store what it sends: then every client has to ask
// by himself.
func (s *sink) Write(p []byte) (int, error) {
	now := s.flight.look()
	if now.file == nil {
		return 0, errNotStored
	}
	if now.header == nil {
		size, err := strconv.ParseInt(s.header.Get("Content-Length"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the size of what is fetched: %w", err)
		}
		s.flight.update(func() { s.flight.header, s.flight.size = s.header.Clone(), size })
	}
	return len(p), nil
}

// Where distribution's store has its links, below repositories/<name>.
const (
	layers    = "_layers"
	revisions = "_manifests/revisions"
)

// stored says whether the repository has the content. It need not be right: it decides only who fetches what is missing.
func (g *Group) stored(ctx context.Context, repository, links string, content digest.Digest) bool {
	algorithm, hex := content.Algorithm().String(), content.Encoded()
	for _, name := range []string{
		path.Join("/docker/registry/v2/repositories", repository, links, algorithm, hex, "link"),
		path.Join("/docker/registry/v2/blobs", algorithm, hex[:2], hex, "data"),
	} {
		if _, err := g.store.Stat(ctx, name); err != nil {
			return false
		}
	}
	return true
}
