package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
)

// disk is a storage driver on which everything is stored.
type disk struct{ driver.StorageDriver }

func (disk) Stat(context.Context, string) (driver.FileInfo, error) { return nil, nil }

// below is distribution's blobs; it notes who asks.
type below struct {
	distribution.BlobStore
	err     error
	writers []http.ResponseWriter
}

func (b *below) ServeBlob(_ context.Context, w http.ResponseWriter, _ *http.Request, _ digest.Digest) error {
	b.writers = append(b.writers, w)
	return b.err
}

// What is in the store must not wait for anything, and costs nothing on top.
func TestStoredBlobsTakeNoFlight(t *testing.T) {
	group := NewGroup(t.TempDir())
	group.store = disk{}
	distributions := &below{err: errors.New("its own")}
	w := httptest.NewRecorder()
	served := &blobs{BlobStore: distributions, repository: "library/app", group: group}
	err := served.ServeBlob(t.Context(), w, httptest.NewRequest(http.MethodGet, "/", nil), digest.FromString("x"))
	if !errors.Is(err, distributions.err) || len(distributions.writers) != 1 || distributions.writers[0] != http.ResponseWriter(w) {
		t.Errorf("distribution was asked %d times, error %v; want once, for the client itself", len(distributions.writers), err)
	}
}

// distribution would write an error behind a blob of which the client has everything.
func TestPastTheStoreIsNoError(t *testing.T) {
	group := NewGroup(t.TempDir())
	group.store = nothing{}
	served := &blobs{BlobStore: &below{err: errPast}, repository: "library/app", group: group, size: 1 << 62}
	err := served.ServeBlob(t.Context(), httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), digest.FromString("x"))
	if err != nil {
		t.Error(err)
	}
}

// nothing is a storage driver without files.
type nothing struct{ driver.StorageDriver }

func (nothing) Stat(_ context.Context, path string) (driver.FileInfo, error) {
	return nil, driver.PathNotFoundError{Path: path}
}

// gets is distribution's manifests, which do not answer before both have asked.
type gets struct {
	distribution.ManifestService
	asked   chan string
	proceed chan struct{}
}

func (g gets) Get(_ context.Context, _ digest.Digest, options ...distribution.ManifestServiceOption) (distribution.Manifest, error) {
	g.asked <- tagOf(options)
	<-g.proceed
	return nil, errors.New("the end")
}

// A tag may move: who asks for it must not get what another one has asked by its digest, nor the other way round.
func TestTagsAndDigestsAreKeptApart(t *testing.T) {
	group := NewGroup(t.TempDir())
	group.store = nothing{}
	service := gets{asked: make(chan string, 2), proceed: make(chan struct{})}
	served := manifests{service, "library/app", group}
	ended := make(chan error, 2)
	for _, options := range [][]distribution.ManifestServiceOption{nil, {distribution.WithTag("latest")}} {
		go func() {
			_, err := served.Get(t.Context(), digest.FromString("x"), options...)
			ended <- err
		}()
	}
	if one, other := <-service.asked, <-service.asked; one == other {
		t.Errorf("asked for %q twice", one)
	}
	close(service.proceed)
	<-ended
	<-ended
}
