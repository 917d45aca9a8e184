package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/singleflight"

	"github.com/gardener-extensions/registry-cache/registry/fetch"
	"github.com/gardener-extensions/registry-cache/registry/index"
	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

const (
	// touchAfter is how old the recorded use of a blob must be before it is recorded again.
	touchAfter = 5 * time.Minute
	// background bounds a request to the upstream that goes on after its clients have left.
	background = 30 * time.Second
)

// Options configure a cache.
type Options struct {
	Store    *store.Store
	Upstream fetch.Upstream
	// Credentials says that the cache has credentials: a 401 or 403 counts as an outage then.
	Credentials bool
	// TTL is how long a blob is kept after its last use, and a tag after its last confirmation. 0
	// keeps them until space is needed.
	TTL time.Duration
	// Limit bounds the stored bytes. 0 means the size of the volume.
	Limit int64
	// Replicas are other replicas of this cache, or nil. They are asked for a tag while the upstream
	// is away; Upstream asks them for content by digest.
	Replicas fetch.Upstream
}

// Cache serves the blobs and manifests of one upstream. Its methods may be called at the same time.
type Cache struct {
	options  Options
	index    *index.Index
	fetcher  *fetch.Fetcher
	asking   singleflight.Group // requests to the upstream, apart from flights
	reserved atomic.Int64       // bytes of files that arrive
	awaited  atomic.Int64       // those that the files do not have yet
	requests chan roomRequest
	now      func() time.Time
}

// New returns a cache. Run evicts in the background.
func New(o Options) *Cache {
	c := &Cache{options: o, index: index.New(), requests: make(chan roomRequest), now: time.Now}
	c.fetcher = &fetch.Fetcher{Store: o.Store, Upstream: o.Upstream, Volume: c}
	return c
}

// From says where an answer comes from.
type From string

// The places from which an answer comes.
const (
	FromVolume   From = "volume"
	FromUpstream From = "upstream"
	// FromStale is a tag as last confirmed, because the upstream is away.
	FromStale From = "stale"
)

// Blob is a blob to serve: a stored file, or a flight.
type Blob struct {
	From From
	Size int64
	File *os.File // or nil
	// Unreadable says that the disk fails to read File: another request gets the blob from the
	// upstream.
	Unreadable func()
	flight     *fetch.Flight
}

// Close ends the use of the blob.
func (b *Blob) Close() error {
	if b.flight != nil {
		b.flight.Leave()
	}
	if b.File != nil {
		return b.File.Close()
	}
	return nil
}

// Arrived returns how many bytes of the blob can be served now.
func (b *Blob) Arrived() int64 {
	if b.flight == nil {
		return b.Size
	}
	return b.flight.Arrived()
}

// Copy copies a part of a blob that is on its way.
func (b *Blob) Copy(ctx context.Context, w io.Writer, offset, end int64) error {
	return b.flight.Copy(ctx, w, offset, end)
}

// Blob returns a blob from the volume, or on its way from the upstream. The caller must close it.
// It waits at most upstream.Patience for the upstream.
func (c *Cache) Blob(ctx context.Context, repository string, blob digest.Digest) (*Blob, error) {
	if file, size, err := c.open(ctx, store.Link{Repository: repository}, blob); err == nil {
		unreadable := func() { c.options.Store.Distrust(blob) }
		return &Blob{From: FromVolume, Size: size, File: file, Unreadable: unreadable}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, upstream.Patience, upstream.ErrLate)
	defer cancel()
	flight, err := c.fetcher.Join(ctx, repository, blob)
	if err != nil {
		return &Blob{From: FromUpstream}, fmt.Errorf("fetching blob %s: %w", blob, err)
	}
	return &Blob{From: FromUpstream, Size: flight.Size(), flight: flight}, nil
}

// Stat returns a blob without content. It does not fetch the blob.
func (c *Cache) Stat(ctx context.Context, repository string, blob digest.Digest) (*Blob, error) {
	if file, size, err := c.open(ctx, store.Link{Repository: repository}, blob); err == nil {
		return &Blob{From: FromVolume, Size: size}, file.Close()
	}
	path := "blobs/" + blob.String()
	size, err := ask(ctx, c, "blob", repository, path, func(ctx context.Context) (int64, error) {
		response, err := c.request(ctx, http.MethodHead, repository, path)
		if err != nil {
			return 0, err
		}
		return response.ContentLength, response.Body.Close()
	})
	return &Blob{From: FromUpstream, Size: size}, err
}

// ask shares one call of do between all who ask for the same at the same time, and waits at most
// upstream.Patience for it. The call goes on, and stores its answer for those who come later.
func ask[T any](
	ctx context.Context, c *Cache, kind, repository, path string, do func(context.Context) (T, error),
) (T, error) {
	var none T
	key := repository + "/" + path
	if err := c.options.Upstream.Away(ctx, repository, path); err != nil {
		return none, err
	}
	shared := c.asking.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), background, upstream.ErrLate)
		defer cancel()
		return do(ctx)
	})
	waiting, cancel := context.WithTimeoutCause(ctx, upstream.Patience, upstream.ErrLate)
	defer cancel()
	select {
	case got := <-shared:
		if got.Shared {
			metrics.Shared.WithLabelValues(kind).Inc()
		}
		value, _ := got.Val.(T)
		return value, got.Err
	case <-waiting.Done():
		c.asking.Forget(key) // the next client that may ask does not wait for a request that hangs
		return none, fmt.Errorf("asking the upstream for %s: %w", key, context.Cause(waiting))
	}
}

// request asks the upstream. An answer other than 200 is an *upstream.StatusError.
func (c *Cache) request(ctx context.Context, method, repository, path string) (*http.Response, error) {
	return request(ctx, c.options.Upstream, method, repository, path)
}

func request(ctx context.Context, of fetch.Upstream, method, repository, path string) (*http.Response, error) {
	response, err := of.Do(ctx, method, repository, path, accepted)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Join(&upstream.StatusError{Status: response.StatusCode}, response.Body.Close())
	}
	return response, err
}

// open opens a stored blob and records its use.
func (c *Cache) open(ctx context.Context, l store.Link, blob digest.Digest) (*os.File, int64, error) {
	start := c.now()
	file, size, err := c.options.Store.Open(ctx, blob)
	if errors.Is(err, store.ErrNotStored) {
		c.index.Forget(blob, start)
	}
	if err != nil {
		return nil, 0, err
	}
	c.used(l, blob, size)
	return file, size, nil
}

// used records the use of a blob. What the volume does not take is only logged.
func (c *Cache) used(l store.Link, blob digest.Digest, size int64) {
	now := c.now()
	newLink, before := c.index.Use(blob, size, l, now)
	var err error
	if newLink {
		err = c.options.Store.Link(blob, l)
	}
	if err == nil && now.Sub(before) > touchAfter {
		err = c.options.Store.Used(blob, now)
	}
	if err != nil {
		slog.Warn("the use of a blob is not recorded", "blob", blob, "error", err)
	}
}

// Stored implements fetch.Volume.
func (c *Cache) Stored(repository string, blob digest.Digest, size int64) {
	c.used(store.Link{Repository: repository}, blob, size)
}

// Left implements fetch.Volume.
func (c *Cache) Left(blob digest.Digest, size int64) { c.index.Left(blob, size, c.now()) }

// Close ends all downloads. What has arrived stays on the volume.
func (c *Cache) Close() { c.fetcher.Close() }
