package registry

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// fakeReplica acts as the other replica of a cache, with or without a fault.
type fakeReplica struct {
	address string
	asked   atomic.Int64
}

// newReplica serves on an address of its own, as a pod does.
func newReplica(t *testing.T, handler http.Handler) *fakeReplica {
	t.Helper()
	listener := Listen(t, "127.0.0.2")
	r := &fakeReplica{address: listener.Addr().String()}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.asked.Add(1)
		handler.ServeHTTP(w, request)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return r
}

// withReplica starts a cache with the replica, on another address.
func withReplica(t *testing.T, u *testUpstream, r *fakeReplica) *testServer {
	t.Helper()
	host, _, _ := strings.Cut(r.address, ":")
	return newServerWith(t, u, t.TempDir(), &upstream.ReplicaOptions{
		Address: "replicas:" + r.address[len(host)+1:],
		Dial:    Dial,
		Lookup:  func(context.Context, string) ([]string, error) { return []string{host, "127.0.0.1"}, nil },
		Own: func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.IPv4(127, 0, 0, 1), Mask: net.CIDRMask(8, 32)}}, nil
		},
	})
}

// TestReplica: content that another replica has stored is not requested from the upstream. Tags are
// requested, except in an outage.
func TestReplica(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		image := u.push(t, "v1", 3, 200<<10)
		first := newTestServer(t, u, t.TempDir())
		pullAll(t, first, image)
		first.await(t, 4)
		r := newReplica(t, first.Config.Handler)
		second := withReplica(t, u, r)
		u.forget()
		pullAll(t, second, image)
		if got := u.asked("GET "); got > 1 { // the tag, whose digest is unknown
			t.Errorf("the upstream was asked %d times", got)
		}
		second.await(t, 4)

		third := withReplica(t, u, r)
		first.age(t)
		u.breakWith(t, fault{answer: status(503)})
		pullAll(t, third, image)
		if a := getFrom(t, http.MethodGet, third.manifest(image.tag)); a.header.Get("Warning") == "" {
			t.Errorf("a tag that only a replica has stored: %d without a warning", a.status)
		}
		if a := getFrom(t, http.MethodGet, third.manifest("v9")); a.status != http.StatusServiceUnavailable && a.status != http.StatusBadGateway {
			t.Errorf("an unknown tag: %d", a.status)
		}
	})
}

// TestBadReplica: a replica that is gone, is slow or sends wrong content delays a pull once, by
// half a second.
func TestBadReplica(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]http.HandlerFunc{
		"hangs":      func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"cuts":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"error":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"wrong":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 200<<10)) },
		"wrong size": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) },
		"stalls": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "204800")
			_, _ = w.Write(make([]byte, 1000))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			Virtually(t, func(t *testing.T) {
				u := newTestUpstream(t, false)
				image := u.push(t, "v1", 3, 200<<10)
				r := newReplica(t, bad)
				second := withReplica(t, u, r)
				start := time.Now()
				pullAll(t, second, image)
				if took := time.Since(start); took > time.Second {
					t.Errorf("the pull took %s", took)
				}
				if r.asked.Load() == 0 {
					t.Error("the replica was not asked, so this proves nothing")
				}
			})
		})
	}
}

// TestDrippingReplica: a replica that sends a blob very slowly is given up after half of the nodes'
// patience, and is not asked again for a while.
func TestDrippingReplica(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		image := u.push(t, "v1", 3, 200<<10)
		r := newReplica(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "204800")
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 100))
				_ = http.NewResponseController(w).Flush()
				<-time.After(100 * time.Millisecond)
			}
		}))
		u.breakWith(t, fault{answer: func(*testUpstream, http.ResponseWriter, *http.Request) bool {
			<-time.After(600 * time.Millisecond)
			return false
		}})
		cache := withReplica(t, u, r)
		for blob, content := range image.content {
			if a := getFrom(t, http.MethodGet, cache.blob(blob.String())); a.status != http.StatusOK || string(a.body) != string(content) {
				t.Errorf("%d after %s: %.100s", a.status, a.took, a.body)
			}
		}
		if n := r.asked.Load(); n != 1 {
			t.Errorf("the replica was asked %d times, want 1", n)
		}
	})
}
