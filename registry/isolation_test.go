package registry_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry"
)

// TestThrottledObject: if the upstream throttles one object, others are still served.
func TestThrottledObject(t *testing.T) {
	for name, test := range map[string]struct{ path, part string }{
		"429 of a repository":   {"/v2/library/other/manifests/v1", "/other/"},
		"503 of a repository":   {"/v2/library/other/manifests/v1", "/other/"},
		"429 behind a redirect": {"/v2/library/other/blobs/" + digest.FromString("x").String(), "/storage"},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				o.push("v1", 1000)
				p := start(t, o.URL, t.TempDir())
				get(t, p.tag("v1"))
				code := http.StatusTooManyRequests
				if strings.HasPrefix(name, "503") {
					code = http.StatusServiceUnavailable
				}
				o.when("/blobs/"+digest.FromString("x").String(), status(http.StatusTemporaryRedirect, "Location", o.URL+"/storage"))
				o.when(test.part, status(code, "Retry-After", "20"))
				moved := o.push("v1", 1000)
				for i := range 3 {
					if a := get(t, p.url+test.path); a.status < 500 {
						t.Errorf("the throttled object: %s", a)
					}
					tag := fmt.Sprintf("new%d", i)
					pushed := o.push(tag, 1000)
					if a := get(t, p.tag(tag)); a.digest() != pushed.manifest.String() || a.stale() {
						t.Errorf("a new tag of another repository: %s", a)
					}
					if a := get(t, p.blob(pushed.layer.String())); !a.is(pushed.content) {
						t.Errorf("a new blob of another repository: %s", a)
					}
				}
				await(t, "a tag of another repository has moved", func() bool {
					a := get(t, p.tag("v1"))
					if a.stale() {
						t.Fatal("a tag of another repository is stale")
					}
					return a.digest() == moved.manifest.String()
				})
			})
		})
	}
}

// TestOtherRepository: a request for a blob in the wrong repository does not affect requests in the
// right one.
func TestOtherRepository(t *testing.T) {
	for _, code := range []int{401, 403, 404, 500} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				pushed := o.push("v1", 100<<10)
				both := make(chan struct{})
				o.when("/v2/bogus/", func(w http.ResponseWriter, r *http.Request) bool {
					select {
					case <-both:
					case <-r.Context().Done():
					}
					return status(code)(w, r)
				})
				p := start(t, o.URL, t.TempDir())
				var bogus sync.WaitGroup
				bogus.Go(func() { get(t, p.url+"/v2/bogus/repository/blobs/"+pushed.layer.String()) })
				await(t, "the upstream is asked where the blob is not", func() bool { return o.requests("/v2/bogus/") > 0 })
				time.AfterFunc(300*time.Millisecond, func() { close(both) })
				if a := get(t, p.blob(pushed.layer.String())); !a.is(pushed.content) {
					t.Errorf("in the right repository: %s", a)
				}
				bogus.Wait()
			})
		})
	}
}

// TestLeavers: clients that leave before the answer do not each cause a new request to the
// upstream.
func TestLeavers(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		o.push("v1", 1000)
		over := make(chan struct{})
		defer close(over)
		o.when("/manifests/v1", func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return false
		})
		p := start(t, o.URL, t.TempDir())
		for range 10 { // within the patience of the cache
			ctx, leave := context.WithTimeout(t.Context(), 30*time.Millisecond)
			ask(ctx, http.MethodGet, p.tag("v1"))
			leave()
		}
		if n := o.requests("/manifests/v1"); n != 1 {
			t.Errorf("10 clients that left: the upstream was asked %d times for one tag", n)
		}
	})
}

// openSlowly requests a URL and returns the connection, which buffers little of the answer.
func openSlowly(t *testing.T, url string) net.Conn {
	t.Helper()
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	connection, err := registry.Dial(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	if _, err := io.WriteString(connection, "GET /"+path+" HTTP/1.1\r\nHost: cache\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return connection
}

// TestDrippingClient: a slow reader of a blob that cannot be stored does not delay others.
func TestDrippingClient(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		content := noise(24 << 20)
		blob := o.pushBlob(app, content)
		o.when("GET /v2/"+app+"/blobs/", func(http.ResponseWriter, *http.Request) bool {
			<-time.After(300 * time.Millisecond) // both clients have asked before the first byte
			return false
		})
		p := start(t, o.URL, t.TempDir(), withLimit(1))
		slow := openSlowly(t, p.blob(blob.String()))
		go func() {
			defer func() { _ = slow.Close() }()
			for range 1000 {
				if _, err := io.CopyN(io.Discard, slow, 8<<10); err != nil {
					return
				}
				<-time.After(250 * time.Millisecond)
			}
		}()
		if a := get(t, p.blob(blob.String())); a.err != nil || !bytes.Equal(a.body, content) {
			t.Errorf("the other client: %.120s", a)
		}
	})
}

// TestMemoryOfPassing: blobs that cannot be stored use few buffers, even if their clients stall. It
// is not parallel, because it measures the memory of this process.
func TestMemoryOfPassing(t *testing.T) {
	const blobs, size, bound = 60, 8 << 20, 128 << 20
	o := newOrigin(t)
	var sent atomic.Int64
	o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		portion := make([]byte, 64<<10)
		for range size / len(portion) {
			n, err := w.Write(portion)
			if sent.Add(int64(n)); err != nil {
				break
			}
		}
		return true
	})
	p := start(t, o.URL, t.TempDir(), withLimit(1))
	before := heap()
	for i := range blobs {
		openSlowly(t, p.blob(digest.FromString(fmt.Sprint(i)).String()))
	}
	await(t, "all blobs are asked for", func() bool { return o.requests("/blobs/") >= blobs })
	var grown int64
	last, stable := int64(0), 0
	within(t, clientPatience, func() bool { // until the upstream is blocked
		if grown = heap() - before; last == sent.Load() {
			stable++
		} else {
			last, stable = sent.Load(), 0
		}
		return grown > bound || stable == 20
	})
	if grown > bound {
		t.Errorf("%d blobs that pass need %d MiB, want at most %d", blobs, grown>>20, bound>>20)
	}
}

// heap returns the memory in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse) // #nosec G115 -- no machine has that much memory
}
