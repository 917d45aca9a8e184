package registry

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // storage: inmemory
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const repositoryName = "library/app"

// testUpstream is distribution's registry with a token server. It can fail in many ways.
type testUpstream struct {
	*httptest.Server
	registry http.Handler
	tokens   bool // whether requests need a token
	delay    time.Duration

	fault      atomic.Pointer[fault]
	mu         sync.Mutex
	requests   map[string]int // by method and path; tokens count as "token"
	running    map[string]int // running requests, by method and path
	most       int            // the maximum number of identical requests that ran at the same time
	bytes      atomic.Int64   // bytes sent to caches
	direct     atomic.Int64   // requests of clients that do not pull through the cache
	serving    sync.WaitGroup
	over       chan struct{}
	credential string // the credential that the token server requires, or empty
}

// fault is a kind of outage. answer may answer a request instead of the registry, and then returns
// true. In virtual tests, dial connects to the upstream.
type fault struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	answer func(u *testUpstream, w http.ResponseWriter, r *http.Request) bool
}

// apps provides new registries. Each starts a goroutine that never ends, so none may be created in
// a test's bubble.
var apps = make(chan http.Handler)

func makeApps() {
	for {
		apps <- handlers.NewApp(context.Background(), &configuration.Configuration{
			Storage: configuration.Storage{
				"inmemory": configuration.Parameters{}, "delete": configuration.Parameters{"enabled": true},
				"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}},
			},
		})
	}
}

func newTestUpstream(t *testing.T, tokens bool) *testUpstream {
	t.Helper()
	u := &testUpstream{registry: <-apps, tokens: tokens, requests: map[string]int{}, running: map[string]int{}, over: make(chan struct{})}
	u.Server = newHTTPServer(t, u)
	t.Cleanup(func() { close(u.over); u.CloseClientConnections(); u.Close() })
	return u
}

// connect connects the caches of a virtual test to the upstream.
func (u *testUpstream) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if fault := u.fault.Load(); fault != nil && fault.dial != nil {
		return fault.dial(ctx, network, address)
	}
	return Dial(ctx, network, address)
}

// ServeHTTP implements http.Handler.
func (u *testUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.serving.Add(1)
	defer u.serving.Done()
	if r.Header.Get(directHeader) == "" {
		defer u.count(r)()
	} else {
		u.direct.Add(1)
	}
	if fault := u.fault.Load(); fault != nil && fault.answer != nil && fault.answer(u, w, r) {
		return
	}
	<-time.After(u.delay) // the latency of the upstream
	switch {
	case r.URL.Path == "/token":
		if _, password, _ := r.BasicAuth(); password != u.credential {
			http.Error(w, "denied", http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"token": "granted", "expires_in": 300})
	case u.tokens && r.Header.Get("Authorization") != "Bearer granted":
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry",scope="repository:%s:pull"`, u.URL, repositoryName))
		w.WriteHeader(http.StatusUnauthorized)
	default:
		counting := u.counting(w, r)
		u.registry.ServeHTTP(&counting, r)
	}
}

type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

// Write implements io.Writer.
func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes.Add(int64(n))
	return n, err
}

// directHeader marks the requests of clients that do not pull through a cache.
const directHeader = "X-Direct"

func (u *testUpstream) counting(w http.ResponseWriter, r *http.Request) countingWriter {
	if r.Header.Get(directHeader) != "" {
		return countingWriter{w, new(atomic.Int64)}
	}
	return countingWriter{w, &u.bytes}
}

// sent waits until all answers have ended, and returns the number of bytes that were sent to
// caches.
func (u *testUpstream) sent() int64 {
	u.serving.Wait()
	return u.bytes.Load()
}

// count counts a request. done must be called at its end.
func (u *testUpstream) count(r *http.Request) (done func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	request := r.Method + " " + r.URL.Path
	if r.URL.Path == "/token" {
		request = "token"
	}
	u.requests[request]++
	u.running[request]++
	u.most = max(u.most, u.running[request])
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.running[request]--
	}
}

// asked counts the requests that begin with prefix.
func (u *testUpstream) asked(prefix string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for request, times := range u.requests {
		if strings.HasPrefix(request, prefix) {
			n += times
		}
	}
	return n
}

func (u *testUpstream) forget() {
	u.serving.Wait() // without the lock, which ending requests need
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.requests)
	u.most = 0
	u.bytes.Store(0)
	u.direct.Store(0)
}

// testImage is an image in the upstream.
type testImage struct {
	tag      string
	manifest digest.Digest
	content  map[digest.Digest][]byte // the content of its layers
}

// push stores an image with layers of random content.
func (u *testUpstream) push(t *testing.T, tag string, layers, size int) testImage {
	t.Helper()
	image := testImage{tag: tag, content: map[digest.Digest][]byte{}}
	config := u.pushBlob(t, []byte(`{"architecture":"amd64","os":"linux"}`))
	manifest := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config}
	manifest.Config.MediaType = v1.MediaTypeImageConfig
	for range layers {
		content := make([]byte, size)
		_, _ = rand.Read(content)
		layer := u.pushBlob(t, content)
		layer.MediaType = v1.MediaTypeImageLayer
		manifest.Layers = append(manifest.Layers, layer)
		image.content[layer.Digest] = content
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	image.manifest = digest.FromBytes(content)
	u.send(t, http.MethodPut, "/v2/"+repositoryName+"/manifests/"+tag, v1.MediaTypeImageManifest, content)
	return image
}

func (u *testUpstream) pushBlob(t *testing.T, content []byte) v1.Descriptor {
	t.Helper()
	blob := digest.FromBytes(content)
	location := u.send(t, http.MethodPost, "/v2/"+repositoryName+"/blobs/uploads/", "", nil).Header().Get("Location")
	target := location[strings.Index(location, "/v2/"):] + "&digest=" + blob.String()
	u.send(t, http.MethodPut, target, "application/octet-stream", content)
	return v1.Descriptor{Digest: blob, Size: int64(len(content))}
}

// send sends a request that bypasses faults and counters.
func (u *testUpstream) send(t *testing.T, method, target, kind string, content []byte) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, target, bytes.NewReader(content))
	request.Header.Set("Content-Type", kind)
	response := httptest.NewRecorder()
	u.registry.ServeHTTP(response, request)
	if response.Code >= 300 {
		t.Fatalf("%s %s: %d %s", method, target, response.Code, response.Body)
	}
	return response
}

// breakWith starts an outage, and returns a function that ends it.
func (u *testUpstream) breakWith(t *testing.T, f fault) (undo func()) {
	t.Helper()
	u.fault.Store(&f)
	if f.dial != nil {
		u.CloseClientConnections()
	}
	return func() { u.fault.Store(nil) }
}

// away are the kinds of outages of an upstream.
var away = map[string]fault{
	"hangs":              {answer: hang},
	"token server hangs": {answer: onlyTokens(hang)},
	"refuses":            {dial: refuses},
	"black hole":         {dial: blackHole},
	"401":                {answer: status(401)},
	"403":                {answer: status(403)},
	"429":                {answer: status(429)},
	"500":                {answer: status(500)},
	"503":                {answer: status(503)},
	"token server 500":   {answer: onlyTokens(status(500))},
	"token server 401":   {answer: onlyTokens(status(401))},
}

func hang(u *testUpstream, _ http.ResponseWriter, r *http.Request) bool {
	select {
	case <-r.Context().Done():
	case <-u.over:
	}
	return true
}

func status(code int) func(*testUpstream, http.ResponseWriter, *http.Request) bool {
	return func(_ *testUpstream, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(code)
		return true
	}
}

func onlyTokens(do func(*testUpstream, http.ResponseWriter, *http.Request) bool) func(*testUpstream, http.ResponseWriter, *http.Request) bool {
	return func(u *testUpstream, w http.ResponseWriter, r *http.Request) bool {
		return r.URL.Path == "/token" && do(u, w, r)
	}
}

// refuses and blackHole simulate addresses without a server.
func refuses(_ context.Context, network, _ string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
}

func blackHole(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // as in package upstream
	defer cancel()
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
}

// answerOf is an answer to a client.
type answerOf struct {
	status  int
	header  http.Header
	body    []byte
	took    time.Duration // until the first byte
	failure error         // the error of reading the body
}

func getFrom(t *testing.T, method, url string) answerOf {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	response, err := clientOf(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	a := answerOf{status: response.StatusCode, header: response.Header, took: time.Since(start)}
	a.body, a.failure = io.ReadAll(response.Body)
	return a
}
