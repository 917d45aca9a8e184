package fetch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
)

// abandoned is how long a flight continues without a client. What has arrived stays on the volume.
const abandoned = 30 * time.Second

// withoutDisk is how long new flights keep blobs in memory only after the disk failed to read one.
const withoutDisk = 10 * time.Second

// Upstream is implemented by upstream.Client.
type Upstream interface {
	// Away returns an error if a request for a path below the repository would fail at once.
	Away(ctx context.Context, repository, path string) error
	Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error)
}

// Replica is implemented by the body of an answer that comes from another replica of the cache.
type Replica interface {
	// Wrong says that the content was another one than asked for.
	Wrong()
}

// Volume makes room and learns what is stored. Package cache implements it with the index.
type Volume interface {
	// Reserve reports whether the volume has room for these bytes, and evicts for it.
	Reserve(bytes int64) (Room, bool)
	// Stored is called when a blob is stored.
	Stored(repository string, blob digest.Digest, size int64)
	// Left is called when a flight has ended, and what has arrived stays on the volume.
	Left(blob digest.Digest, size int64)
}

// Room is what Reserve has reserved.
type Room interface {
	// Wrote says that the file has these bytes now.
	Wrote(bytes int64)
	// Release is called when the file is stored or does not grow any more.
	Release()
}

// Fetcher fetches blobs. Its methods may be called at the same time.
type Fetcher struct {
	Store    *store.Store
	Upstream Upstream
	Volume   Volume

	unreadable atomic.Int64 // when the disk failed to read a flight, in ns

	mu      sync.Mutex
	flights map[digest.Digest]*Flight // that clients can join
	running map[*Flight]struct{}
	closed  bool
	ended   sync.WaitGroup
}

// Join returns the flight of a blob, which it starts if there is none, once the first bytes have
// arrived. The caller must leave the flight. The error is the upstream's or the cause of ctx; the
// flight goes on without the caller then.
func (f *Fetcher) Join(ctx context.Context, repository string, blob digest.Digest) (*Flight, error) {
	flight, err := f.join(ctx, repository, blob)
	if err != nil {
		return nil, err
	}
	select {
	case <-flight.begun:
	case <-flight.over:
		err = flight.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if flight.hasBegun() {
		return flight, nil
	}
	flight.Leave()
	return nil, err
}

func (f *Fetcher) join(ctx context.Context, repository string, blob digest.Digest) (*Flight, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	away := f.Upstream.Away(ctx, repository, "blobs/"+blob.String())
	if f.closed {
		away = errClosed
	}
	earlier := f.flights[blob]
	if earlier != nil && (away == nil || earlier.hasBegun()) && earlier.enter() {
		metrics.Shared.WithLabelValues("blob").Inc()
		return earlier, nil
	}
	if away != nil {
		return nil, away
	}
	if earlier != nil && earlier.hasPassed() {
		return nil, ErrOutOfReach
	}
	if earlier != nil {
		metrics.Replaced.Inc()
	}
	if f.flights == nil {
		f.flights, f.running = map[digest.Digest]*Flight{}, map[*Flight]struct{}{}
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	flight := newFlight(f, repository, blob, cancel)
	f.flights[blob], f.running[flight] = flight, struct{}{}
	f.ended.Go(func() {
		if earlier != nil {
			<-earlier.over // a file has one writer
		}
		flight.run(ctx)
		cancel(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.running, flight)
		if f.flights[blob] == flight {
			delete(f.flights, blob)
		}
	})
	return flight, nil
}

// Drop removes what has arrived of a blob, unless a flight goes on with it.
func (f *Fetcher) Drop(blob digest.Digest) error {
	f.mu.Lock()
	if f.flights[blob] != nil {
		f.mu.Unlock()
		return nil
	}
	remove, err := f.Store.SetPartialAside(blob)
	f.mu.Unlock()
	return errors.Join(err, remove())
}

// Close ends all flights. What has arrived stays on the volume.
func (f *Fetcher) Close() {
	f.mu.Lock()
	f.closed = true
	for flight := range f.running {
		flight.cancel(errClosed)
	}
	f.mu.Unlock()
	f.ended.Wait()
}

// ErrOutOfReach says that the wanted bytes of a blob on its way have passed, or arrive much later.
var ErrOutOfReach = errors.New("these bytes of the blob have passed, or arrive later: ask the upstream")

var errClosed = errors.New("the cache stops")
