package fetch

import (
	"context"
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
)

// stalled is how long a fetch may be without a byte before others ask for themselves: what hangs must not take along who comes
// later, when the upstream works again. containerd turns away from a mirror after 30 s without an answer.
const stalled = 10 * time.Second

var coalesced = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "registry_proxy_coalesced_requests_total",
	Help: "The number of requests for what was not stored that were answered of a fetch which another request had started, by type",
}, []string{"type"})

// Group decides for the requests of one registry. It keeps nothing but what is under way.
type Group struct {
	root    string // the folder of the store
	mu      sync.Mutex
	flights map[digest.Digest]*flight
	// manifests are small, and fetched as values.
	manifests singleflight.Group
	store     driver.StorageDriver // set by Storage, before the first request
}

// NewGroup returns a Group for a registry whose store is in a folder.
func NewGroup(root string) *Group { return &Group{root: root, flights: map[digest.Digest]*flight{}} }

// fetchFunc asks distribution to fetch a blob, store it and write it to w.
type fetchFunc func(ctx context.Context, w http.ResponseWriter) error

// join returns the flight of a blob of an expected size, and starts it if there is none; nil if there is one that does not get on.
// The caller has to leave the flight.
func (g *Group) join(ctx context.Context, blob digest.Digest, size int64, fetch fetchFunc) *flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.flights[blob]; f != nil {
		if f.silence() > stalled {
			return nil
		}
		f.clients++
		f.users++
		coalesced.WithLabelValues("blob").Inc()
		return f
	}
	// The flight belongs to all of its clients, so it does not end with the request that has started it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := newFlight(cancel, size)
	f.clients, f.users = 1, 2
	g.flights[blob] = f
	go func() {
		defer g.release(f)
		defer cancel()
		err := protect(func() error { return fetch(withFlight(ctx, f), &sink{flight: f, header: http.Header{}}) })
		g.forget(blob, f)
		f.end(err)
	}()
	return f
}

// leave is the end of a client's part in a flight. The last one gives up a fetch that is not needed any more, and waits until the
// blob is in its place or the upload is gone: when a server has no requests, nothing of a flight is left.
func (g *Group) leave(blob digest.Digest, f *flight) {
	g.mu.Lock()
	f.clients--
	last := f.clients == 0
	if last && !f.fetched() {
		delete(g.flights, blob)
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

// underWay says whether there is a flight of the blob.
func (g *Group) underWay(blob digest.Digest) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flights[blob] != nil
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
