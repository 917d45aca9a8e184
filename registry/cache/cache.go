// Package cache serves blobs and manifests from the volume, another replica or the upstream. For a
// tag, it asks the upstream first. While the upstream is away, it serves a tag's last manifest.
// docs/cache.md lists the states of a blob and of a tag.
//
// The package combines the packages store, index and upstream. It does not implement an HTTP
// server.
package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/gardener-extensions/registry-cache/registry/index"
	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

const (
	// mostRequests limits how many shared requests to the upstream run at the same time. Further
	// requests fail with ErrBusy.
	mostRequests = 512
	// recorded is the precision of the time of a blob's last use on the volume: only the first use in
	// each such period is recorded.
	recorded = 5 * time.Minute
	// storing is how long an answer waits for its content to be stored, so that the next request finds
	// it.
	storing = 100 * time.Millisecond
)

// Upstream is implemented by upstream.Client.
type Upstream interface {
	// Away returns an error if a request for the path would fail at once.
	Away(repository, path string) error
	Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error)
}

// Options configure a cache.
type Options struct {
	Store    *store.Store
	Upstream Upstream
	Replicas *upstream.Replicas // may be nil
	// TTL is how long a blob is kept after its last use, and a tag after its last confirmation. 0
	// keeps both until space is needed.
	TTL time.Duration
	// Limit returns the maximum number of stored bytes, which may change. 0 means the size of the
	// volume. Limit may be nil.
	Limit func() int64
}

// Cache serves the blobs and manifests of one upstream. It is safe for concurrent use.
type Cache struct {
	options Options
	index   *index.Index
	asking  singleflight.Group // requests to the upstream
	now     func() time.Time

	evictions chan func() // downloads send evictions to Run, and wait for them
	limit     atomic.Int64
	reserved  atomic.Int64 // bytes reserved for arriving files
	awaited   atomic.Int64 // reserved bytes that have not been written yet

	unstored   *lru.Cache[digest.Digest, time.Time] // blobs that pass through, and until when
	requesting *semaphore.Weighted                  // shared requests to the upstream
	passing    *semaphore.Weighted                  // blobs that pass through
	checks     *semaphore.Weighted                  // checks of stored blobs
	large      *semaphore.Weighted                  // large manifests in memory

	mu       sync.Mutex
	arrivals map[digest.Digest]*arrival
	closed   bool
	ended    sync.WaitGroup
}

// New returns a cache. Nothing is evicted unless Run is running.
func New(o Options) *Cache {
	if o.Limit == nil {
		o.Limit = func() int64 { return 0 }
	}
	c := &Cache{
		options: o, index: index.New(), now: time.Now, evictions: make(chan func()), arrivals: map[digest.Digest]*arrival{},
		requesting: semaphore.NewWeighted(mostRequests), passing: semaphore.NewWeighted(mostPassing), checks: semaphore.NewWeighted(checksAtOnce),
		large: semaphore.NewWeighted(MostLarge),
	}
	c.limit.Store(o.Limit())
	c.unstored, _ = lru.New[digest.Digest, time.Time](mostUnstored) // lru.New returns an error only for a size of 0
	return c
}

// From is the source of an answer.
type From string

// The sources of an answer.
const (
	FromVolume   From = "volume"
	FromUpstream From = "upstream"
	// FromStale marks the last confirmed manifest of a tag, served because the upstream is away.
	FromStale From = "stale"
)

// Query describes a request for an object.
type Query struct {
	Repository string
	// Range is the Range header, or empty.
	Range string
	// Stored is set for a request from another replica. Only stored content answers it.
	Stored bool
}

var (
	// ErrNotHere is returned for an object that is not stored.
	ErrNotHere = errors.New("the object is not stored here")
	// ErrBusy is returned when too many requests are running.
	ErrBusy = errors.New("too many requests at once: ask the upstream directly")

	errAbandoned  = errors.New("no client waits for the blob anymore")
	errClosed     = errors.New("the cache is stopping")
	errDamaged    = errors.New("the upstream's content does not match the digest")
	errNoManifest = errors.New("the upstream's answer is not a manifest, or does not match its digest")
	errUnstored   = errors.New("the volume cannot store the blob")
	errDisk       = errors.New("the disk failed") // not the upstream
	errNoRoom     = fmt.Errorf("%w: it is full", errDisk)
)

// ask calls do once for all concurrent callers with the same request, and waits at most
// upstream.Patience for the result. A call that takes longer continues, so that later requests may
// find its content stored. While the upstream is away, ask fails at once, unless there are other
// replicas.
func ask[T any](
	ctx context.Context, c *Cache, kind, method, repository, path string, do func(context.Context) (T, error),
) (T, error) {
	var none T
	if err := c.options.Upstream.Away(repository, path); err != nil && c.options.Replicas == nil {
		return none, err
	}
	key := method + " " + repository + "/" + path
	shared := c.asking.DoChan(key, func() (any, error) {
		if !c.requesting.TryAcquire(1) {
			return none, ErrBusy
		}
		defer c.requesting.Release(1)
		return do(context.WithoutCancel(ctx))
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
		if errors.Is(context.Cause(waiting), upstream.ErrLate) {
			c.asking.Forget(key) // so that the next client does not wait for a request that hangs
		}
		return none, fmt.Errorf("ask the upstream for %s: %w", key, context.Cause(waiting))
	}
}

// open opens a stored blob, and records its use if it is checked. It returns store.ErrNotStored for
// a missing blob. It returns ErrNotHere if no repository of the upstream has served the blob as the
// kind that l names (manifest or blob).
func (c *Cache) open(l store.Link, blob digest.Digest) (*store.File, error) {
	start := c.now()
	file, err := c.options.Store.Open(blob)
	if errors.Is(err, store.ErrNotStored) {
		c.index.Forget(blob, start)
	}
	if err != nil {
		return nil, err
	}
	if confirmed, listed := c.index.Is(blob, l.Manifest); !confirmed && (listed || !c.options.Store.Linked(blob, l)) {
		return nil, errors.Join(fmt.Errorf("%s is stored as a different kind: %w", blob, ErrNotHere), file.Close())
	}
	if file.Checked {
		c.used(blob, file.Size)
	}
	return file, nil
}

// used records the use of a blob. A write error is only logged.
func (c *Cache) used(blob digest.Digest, size int64) {
	now := c.now()
	if before := c.index.Use(blob, size, now); !now.Truncate(recorded).Equal(before.Truncate(recorded)) {
		if err := c.options.Store.Used(blob, now); err != nil {
			slog.Warn("the use of a blob is not recorded", "blob", blob, "error", err)
		}
	}
}

// stored records that a blob of a repository has been stored.
func (c *Cache) stored(l store.Link, blob digest.Digest, size int64) {
	c.used(blob, size)
	if !c.index.Link(blob, l) {
		return
	}
	if err := c.options.Store.Link(blob, l); err != nil {
		slog.Warn("a link is not stored", "blob", blob, "repository", l.Repository, "error", err)
	}
}

// soon runs store in the background, and waits at most 100 ms for its end.
func (c *Cache) soon(store func()) {
	done := make(chan struct{})
	c.ended.Go(func() { defer close(done); store() })
	select {
	case <-done:
	case <-time.After(storing):
	}
}

// Close cancels all downloads and checks, and waits for them. Partial blobs stay on the volume.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	for _, a := range c.arrivals {
		a.cancel(errClosed)
	}
	c.mu.Unlock()
	c.ended.Wait()
}
