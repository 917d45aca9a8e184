package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// A fetch that needs more than patience for pace bytes does not get on, and who comes to it asks the upstream by himself: what hangs,
// or drips, must not take along who comes later. It is far below what a narrow line has for one blob of many. containerd turns away
// from a mirror after 30 s without an answer.
const (
	patience = 10 * time.Second
	pace     = 64 << 10
)

var coalesced = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "registry_proxy_coalesced_requests_total",
	Help: "The number of requests for what was not stored that were answered of a fetch which another request had started, by type",
}, []string{"type"})

// Group decides for the requests of one registry. It keeps nothing but what is under way.
type Group struct {
	root    string // the folder of the store
	warning rate.Sometimes
	mu      sync.Mutex
	flights map[digest.Digest]*flight
	// manifests are small, and fetched as values.
	manifests singleflight.Group
	store     driver.StorageDriver // set by Storage, before the first request
	buffers   sync.Pool            // of *buffer
	patience  time.Duration
}

// NewGroup returns a Group for a registry whose store is in a folder.
func NewGroup(root string) *Group {
	return &Group{
		root: root, warning: rate.Sometimes{Interval: time.Minute}, flights: map[digest.Digest]*flight{},
		buffers: sync.Pool{New: func() any { return new(buffer) }}, patience: patience,
	}
}

// fetchFunc asks distribution to fetch a blob, store it and write it to w.
type fetchFunc func(ctx context.Context, w http.ResponseWriter) error

// Why a request has no flight, and is answered past the store.
var (
	errNoRoom  = errors.New("the volume has no room for it")
	errStalled = errors.New("another fetch of it does not get on")
)

// join returns the flight of a blob of an expected size, and starts it if there is none. The caller has to leave it. Without a
// flight it returns errNoRoom, errStalled or the end of ctx.
func (g *Group) join(ctx context.Context, repository string, blob digest.Digest, size int64, fetch fetchFunc) (*flight, error) {
	for {
		f, ending, err := g.tryJoin(ctx, repository, blob, size, fetch)
		if ending == nil {
			return f, err
		}
		select {
		case <-ending: // nobody has waited for that one any more
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryJoin returns a flight, or one that is about to end, or an error.
func (g *Group) tryJoin(
	ctx context.Context, repository string, blob digest.Digest, size int64, fetch fetchFunc,
) (f *flight, ending <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch f = g.flights[blob]; {
	case f == nil:
		if err := g.room(size); err != nil {
			return nil, nil, err
		}
		return g.start(ctx, repository, blob, size, fetch), nil, nil
	case f.clients == 0 && !f.fetched():
		return nil, f.over, nil
	case f.stalled():
		return nil, nil, errStalled
	}
	f.clients++
	f.users++
	coalesced.WithLabelValues("blob").Inc()
	return f, nil, nil
}

// start begins a flight with one client; the caller has the lock.
func (g *Group) start(ctx context.Context, repository string, blob digest.Digest, size int64, fetch fetchFunc) *flight {
	// The flight belongs to all of its clients, so it does not end with the request that has started it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := g.newFlight(cancel, repository, size)
	f.clients, f.users = 1, 2
	g.flights[blob] = f
	go func() {
		defer g.release(f)
		defer cancel()
		err := protect(func() error { return fetch(withFlight(ctx, f), &sink{flight: f, header: http.Header{}}) })
		if upload := f.look().upload; err != nil && upload != "" {
			// distribution leaves what it could not verify where it is, for a week: as if the volume were full.
			_ = g.store.Delete(context.WithoutCancel(ctx), upload)
		}
		g.forget(blob, f)
		f.end(err)
	}()
	return f
}

// leave is the end of a client's part in a flight. The last one gives up a fetch that is not needed any more, and waits until the
// blob is in its place or the upload is gone: when a server has no requests, nothing of a flight is left.
func (g *Group) leave(f *flight) {
	g.mu.Lock()
	f.clients--
	last := f.clients == 0
	if last && !f.fetched() {
		f.cancel()
	}
	g.mu.Unlock()
	if last {
		<-f.over
	}
	g.release(f)
}

// release closes the file after the last who may read it.
func (g *Group) release(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.users--
	if f.users == 0 {
		f.close()
	}
}

// sizeOf returns the size of a blob that is on its way to the repository.
func (g *Group) sizeOf(repository string, blob digest.Digest) (size int64, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.flights[blob]
	if f == nil || f.repository != repository || f.clients == 0 || f.stalled() {
		return 0, false
	}
	return f.expected, true
}

// forget makes the next client start another flight.
func (g *Group) forget(blob digest.Digest, f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flights[blob] == f {
		delete(g.flights, blob)
	}
}

// protect makes an error of a panic, which would end the process: no server stands above a flight.
func protect(do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			logrus.Errorf("a fetch from the upstream panicked: %v\n%s", reason, debug.Stack())
			err = fmt.Errorf("a fetch from the upstream panicked: %v", reason)
		}
	}()
	return do()
}
