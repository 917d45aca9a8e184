package registry

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// freeze requests a blob and does not read the answer.
func freeze(t *testing.T, s *testServer, blob digest.Digest) net.Conn {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.(*net.TCPConn).SetReadBuffer(4 << 10)
	request := "GET " + strings.TrimPrefix(s.blob(blob.String()), s.URL) + " HTTP/1.1\r\nHost: cache\r\n\r\n"
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	return connection
}

// TestFrozenClients: clients that do not read need hardly any memory, delay no other client, and
// are cut. The blob that they requested is stored.
func TestFrozenClients(t *testing.T) {
	for name, warm := range map[string]bool{"stored": true, "on its way": false} {
		t.Run(name, func(t *testing.T) {
			u := newTestUpstream(t, false)
			image := u.push(t, "v1", 1, 16<<20)
			cache := newTestServer(t, u, t.TempDir())
			if warm {
				pullAll(t, cache, image)
				cache.await(t, 2)
			}
			before := heap()
			var frozen []net.Conn
			for blob := range image.content {
				for range 50 {
					frozen = append(frozen, freeze(t, cache, blob))
				}
			}
			start := time.Now()
			var nodes sync.WaitGroup
			for range 20 {
				nodes.Go(func() { cache.pullAsANode(t, u, image) })
			}
			nodes.Wait()
			t.Logf("20 nodes: %s", time.Since(start))
			cache.await(t, 2)
			if grown := heap() - before; grown > 32<<20 {
				t.Errorf("50 frozen clients cost %d MiB", grown>>20)
			}
			await(t, "the frozen clients are cut", func() bool { return cache.running.Load() == 0 })
			for _, connection := range frozen {
				_ = connection.Close()
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse + stats.StackInuse)
}

// TestOtherUpstream: a node that reaches this cache by the address of a deleted one continues with
// its own upstream.
func TestOtherUpstream(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		image := u.push(t, "v1", 1, 1000)
		cache := newTestServer(t, u, t.TempDir())
		for query, want := range map[string]int{"": 200, "?ns=upstream.example": 200, "?ns=other.example": 404} {
			if a := getFrom(t, http.MethodGet, cache.manifest(image.tag)+query); a.status != want {
				t.Errorf("%q: %d, want %d", query, a.status, want)
			}
		}
	})
}

// TestRefusals checks which requests a cache refuses.
func TestRefusals(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		u.push(t, "v1", 1, 1000)
		cache := newTestServer(t, u, t.TempDir())
		for _, test := range []struct {
			method, path string
			want         int
		}{
			{http.MethodGet, "/v2/", 200},
			{http.MethodGet, "/v2/_catalog", 405},
			{http.MethodGet, "/v2/" + repositoryName + "/tags/list", 405},
			{http.MethodPost, "/v2/" + repositoryName + "/blobs/uploads/", 405},
			{http.MethodDelete, "/v2/" + repositoryName + "/manifests/v1", 405},
			{http.MethodGet, "/v2/" + repositoryName + "/manifests/nope", 404},
			{http.MethodGet, "/v2/" + strings.Repeat("a", 253) + "/a/manifests/nope", 404},
			{http.MethodGet, "/v2/" + strings.Repeat("a", 254) + "/a/manifests/nope", 400},
			{http.MethodGet, "/v2/" + strings.Repeat("a.", 127) + "a/a/manifests/nope", 400},
			{http.MethodGet, "/v2/" + strings.Repeat("a.", 30_000) + "a/a/manifests/nope", 400},
			{http.MethodHead, "/v2/" + repositoryName + "/manifests/nope", 404},
			{http.MethodGet, "/v2/" + repositoryName + "/blobs/" + digest.FromString("nope").String(), 404},
			{http.MethodHead, "/v2/" + repositoryName + "/blobs/" + digest.FromString("nope").String(), 404},
		} {
			if a := getFrom(t, test.method, cache.URL+test.path); a.status != test.want {
				t.Errorf("%s %s: %d, want %d: %s", test.method, test.path, a.status, test.want, a.body)
			}
		}
	})
}

// stuck is a client that does not read a manifest before over is closed.
type stuck struct {
	*httptest.ResponseRecorder
	waiting *atomic.Int64
	over    <-chan struct{}
}

// Write implements http.ResponseWriter.
func (s stuck) Write(p []byte) (int, error) {
	if s.Code == http.StatusOK {
		s.waiting.Add(1)
		<-s.over
	}
	return len(p), nil
}

// TestLargeManifests: the number of large manifests that are sent at the same time is limited,
// because each is in memory while a client reads it. The number of small manifests is not limited.
func TestLargeManifests(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		small := u.push(t, "v1", 1, 1000)
		content := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[],"annotations":{"a":%q}}`,
			v1.MediaTypeImageIndex, strings.Repeat("a", 100<<10))
		u.send(t, http.MethodPut, "/v2/"+repositoryName+"/manifests/large", v1.MediaTypeImageIndex, content)
		cache, over := newTestServer(t, u, t.TempDir()), make(chan struct{})
		path := strings.TrimPrefix(cache.manifest(digest.FromBytes(content).String()), cache.URL)
		var clients sync.WaitGroup
		defer clients.Wait()
		release := sync.OnceFunc(func() { close(over) })
		defer release()
		await(t, "the large manifest is stored", func() bool {
			return getFrom(t, http.MethodGet, cache.URL+path).status == http.StatusOK
		})
		var waiting atomic.Int64
		for n := range int64(16) {
			clients.Go(func() {
				for waiting.Load() == n { // the slot of a finished answer may not be released yet
					request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
					cache.Config.Handler.ServeHTTP(stuck{httptest.NewRecorder(), &waiting, over}, request)
				}
			})
			await(t, "the client has a slot", func() bool { return waiting.Load() == n+1 })
		}
		if a := getFrom(t, http.MethodGet, cache.URL+path); a.status != http.StatusServiceUnavailable {
			t.Errorf("while 16 others are sent: %d", a.status)
		}
		if a := getFrom(t, http.MethodGet, cache.manifest(small.tag)); a.status != http.StatusOK {
			t.Errorf("a small manifest: %d", a.status)
		}
		release()
		clients.Wait()
		if a := getFrom(t, http.MethodGet, cache.URL+path); a.status != http.StatusOK || len(a.body) != len(content) {
			t.Errorf("afterwards: %d, %d bytes", a.status, len(a.body))
		}
	})
}

// TestBodyThatNeverComes: a client that announces a body and does not send it cannot hold a slot
// forever, although net/http reads bodies before it answers.
func TestBodyThatNeverComes(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		content := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[],"annotations":{"a":%q}}`,
			v1.MediaTypeImageIndex, strings.Repeat("a", 100<<10))
		u.send(t, http.MethodPut, "/v2/"+repositoryName+"/manifests/large", v1.MediaTypeImageIndex, content)
		cache := newTestServer(t, u, t.TempDir())
		url := cache.manifest(digest.FromBytes(content).String())
		await(t, "the large manifest is stored", func() bool { return getFrom(t, http.MethodGet, url).status == http.StatusOK })
		for range 16 {
			sendOnly(t, cache.Listener.Addr(), "GET "+strings.TrimPrefix(url, cache.URL)+" HTTP/1.1\r\nHost: cache\r\nContent-Length: 9\r\n\r\n")
		}
		await(t, "the large manifest is served beside 16 requests without their bodies", func() bool {
			return cache.running.Load() >= 16 && getFrom(t, http.MethodGet, url).status == http.StatusServiceUnavailable
		})
		await(t, "the requests without their bodies are over", func() bool { return cache.running.Load() == 0 })
		if a := getFrom(t, http.MethodGet, url); a.status != http.StatusOK {
			t.Errorf("afterwards: %d", a.status)
		}
	})
}

// sendOnly sends text and returns the connection without reading from it.
func sendOnly(t *testing.T, address net.Addr, text string) net.Conn {
	t.Helper()
	connection, err := Dial(t.Context(), "tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	return connection
}

// TestDebugClients: the debug server cuts a client that does not send its body, or does not read.
func TestDebugClients(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		config := (&Config{}).withDefaults()
		config.HTTP.Debug.Prometheus.Enabled = true
		for name, request := range map[string]string{
			"sends no body": "GET /metrics HTTP/1.1\r\nHost: cache\r\nContent-Length: 9\r\n\r\n",
			"does not read": strings.Repeat("GET /metrics HTTP/1.1\r\nHost: cache\r\n\r\n", 2),
		} {
			server, listener := debugServer(config, &health{}), Listen(t, "127.0.0.1")
			var open atomic.Int64
			server.ConnState = func(_ net.Conn, state http.ConnState) {
				switch state {
				case http.StateNew:
					open.Add(1)
				case http.StateClosed:
					open.Add(-1)
				}
			}
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(func() { _ = server.Close() })
			sendOnly(t, listener.Addr(), request)
			await(t, "the client that "+name+" is cut", func() bool { return open.Load() == 0 })
		}
	})
}
