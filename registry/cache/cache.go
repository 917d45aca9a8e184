// Package cache decides what happens to a request: what is stored is served from the volume, what
// is not is fetched from the upstream, and a tag is asked for at the upstream first. When the
// upstream is away, tags are served as they were last confirmed. docs/cache.md has the states of a
// blob and of a tag.
//
// It composes packages store, index and upstream. It does not know HTTP servers.
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
	// mostRequests bounds the requests to the upstream that clients share. Others go to the
	// upstream.
	mostRequests = 512
	// touchAfter is how old the recorded use of a blob must be before it is recorded again.
	touchAfter = 5 * time.Minute
	// storing is how long an answer waits for what it stores, so that the next request finds it.
	storing = 100 * time.Millisecond
)

// Upstream is implemented by upstream.Client.
type Upstream interface {
	// Away returns an error if a request for a path below the repository would fail at once.
	Away(repository, path string) error
	Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error)
}

// Options configure a cache.
type Options struct {
	Store    *store.Store
	Upstream Upstream
	Replicas *upstream.Replicas // or nil
	// TTL is how long a blob is kept after its last use, and a tag after its last confirmation. 0
	// keeps them until space is needed.
	TTL time.Duration
	// Limit returns the bound of the stored bytes, which may change. 0 means the size of the
	// volume. It may be nil.
	Limit func() int64
}

// Cache serves the blobs and manifests of one upstream. Its methods may be called at the same time.
type Cache struct {
	options Options
	index   *index.Index
	asking  singleflight.Group // requests to the upstream
	now     func() time.Time

	evictions chan func() // for which a download waits
	limit     atomic.Int64
	reserved  atomic.Int64 // bytes of files that arrive
	awaited   atomic.Int64 // those that the files do not have yet

	unstored   *lru.Cache[digest.Digest, time.Time] // until when blobs pass through, because of the volume
	requesting *semaphore.Weighted                  // shared requests to the upstream
	passing    *semaphore.Weighted                  // blobs that pass through
	checks     *semaphore.Weighted                  // stored blobs that are read
	large      *semaphore.Weighted                  // large manifests that are read

	mu       sync.Mutex
	arrivals map[digest.Digest]*arrival
	closed   bool
	ended    sync.WaitGroup
}

// New returns a cache. Run evicts in the background.
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
	c.unstored, _ = lru.New[digest.Digest, time.Time](mostUnstored) // fails for a size of 0
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

// Query says what a client asks for, beside the object.
type Query struct {
	Repository string
	// Range is the header of that name, or empty.
	Range string
	// Stored is set by another replica: only what is stored answers.
	Stored bool
}

var (
	// ErrNotHere says that an object is not stored.
	ErrNotHere = errors.New("it is not stored here")
	// ErrBusy says that too many requests run.
	ErrBusy = errors.New("too many requests run: ask the upstream directly")

	errAbandoned  = errors.New("no client waits for the blob any more")
	errClosed     = errors.New("the cache stops")
	errDamaged    = errors.New("the upstream sent another content than that of the digest")
	errNoManifest = errors.New("the upstream's answer is no manifest, or not that of its digest")
	errUnstored   = errors.New("the volume does not take the blob")
	errDisk       = errors.New("the disk failed") // and not the upstream
	errNoRoom     = fmt.Errorf("%w: it has no room", errDisk)
)

// ask shares one call of do between all who ask for the same at the same time, and waits at most
// upstream.Patience for it. The call goes on, and stores its answer for those who come later.
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
			c.asking.Forget(key) // the next client that may ask does not wait for a request that hangs
		}
		return none, fmt.Errorf("asking the upstream for %s: %w", key, context.Cause(waiting))
	}
}

// open opens a stored blob as a manifest or as a blob, whatever the upstream has called it in a
// repository, and records its use.
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
		return nil, errors.Join(fmt.Errorf("%s is stored as another kind: %w", blob, ErrNotHere), file.Close())
	}
	if file.Checked {
		c.used(blob, file.Size)
	}
	return file, nil
}

// used records the use of a blob. What the volume does not take is only logged.
func (c *Cache) used(blob digest.Digest, size int64) {
	now := c.now()
	if before := c.index.Use(blob, size, now); now.Sub(before) > touchAfter {
		if err := c.options.Store.Used(blob, now); err != nil {
			slog.Warn("the use of a blob is not recorded", "blob", blob, "error", err)
		}
	}
}

// stored records a new blob that the upstream has in a repository.
func (c *Cache) stored(l store.Link, blob digest.Digest, size int64) {
	c.used(blob, size)
	if !c.index.Link(blob, l) {
		return
	}
	if err := c.options.Store.Link(blob, l); err != nil {
		slog.Warn("a link is not stored", "blob", blob, "repository", l.Repository, "error", err)
	}
}

// soon calls store, and waits a moment for its end.
func (c *Cache) soon(store func()) {
	done := make(chan struct{})
	c.ended.Go(func() { defer close(done); store() })
	select {
	case <-done:
	case <-time.After(storing):
	}
}

// Close ends all downloads. What has arrived stays on the volume.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	for _, a := range c.arrivals {
		a.cancel(errClosed)
	}
	c.mu.Unlock()
	c.ended.Wait()
}
