package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/registry"
)

const app = "library/app"

// origin is an upstream that serves the objects pushed to it. Rules change its answers.
type origin struct {
	*httptest.Server
	mu      sync.Mutex
	objects map[string]object // by path
	rules   []*rule
	asked   []string // <method> <path>, in order
}

type object struct {
	kind    string
	content []byte
}

// rule answers the requests whose "<method> <path>" contains part. If do returns false, the next
// rule answers.
type rule struct {
	part string
	do   func(w http.ResponseWriter, r *http.Request) bool
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{objects: map[string]object{}}
	o.Server = serveOn(t, "127.0.0.1", o)
	return o
}

// serveOn starts a server, and ends its requests with the test.
func serveOn(t *testing.T, ip string, handler http.Handler) *httptest.Server {
	t.Helper()
	s := &httptest.Server{Listener: registry.Listen(t, ip), Config: &http.Server{Handler: handler}} //nolint:gosec // of a test
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// ServeHTTP implements http.Handler.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := r.Method + " " + r.URL.Path
	o.mu.Lock()
	o.asked = append(o.asked, request)
	rules, found := o.rules, o.objects[r.URL.Path]
	o.mu.Unlock()
	for _, rule := range rules {
		if strings.Contains(request, rule.part) && rule.do(w, r) {
			return
		}
	}
	switch {
	case found.kind != "":
		w.Header().Set("Content-Type", found.kind)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(found.content).String())
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.content))
	case r.URL.Path == "/v2/":
		_, _ = io.WriteString(w, "{}")
	default:
		refuse(w, http.StatusNotFound, "UNKNOWN", "unknown to the registry")
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"code": code, "message": message}}})
}

// when adds a rule before the existing ones.
func (o *origin) when(part string, do func(w http.ResponseWriter, r *http.Request) bool) (undo func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	added := &rule{part, do}
	o.rules = append([]*rule{added}, o.rules...)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		var rules []*rule
		for _, r := range o.rules {
			if r != added {
				rules = append(rules, r)
			}
		}
		o.rules = rules
	}
}

// status returns a rule's answer without a body.
func status(code int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		return true
	}
}

// requests counts the requests that contain part.
func (o *origin) requests(part string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, request := range o.asked {
		if strings.Contains(request, part) {
			n++
		}
	}
	return n
}

func (o *origin) put(path, kind string, content []byte) digest.Digest {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects[path] = object{kind, content}
	return digest.FromBytes(content)
}

func (o *origin) pushBlob(repository string, content []byte) digest.Digest {
	return o.put("/v2/"+repository+"/blobs/"+digest.FromBytes(content).String(), "application/octet-stream", content)
}

// pushManifest pushes to library/app.
func (o *origin) pushManifest(tag, kind, content string) digest.Digest {
	blob := o.put("/v2/"+app+"/manifests/"+tag, kind, []byte(content))
	return o.put("/v2/"+app+"/manifests/"+blob.String(), kind, []byte(content))
}

// image is an image of library/app with one layer.
type image struct {
	manifest, config, layer digest.Digest
	content                 []byte // the layer's content
}

// push pushes a new image.
func (o *origin) push(tag string, size int) image {
	i := image{content: noise(size)}
	i.layer = o.pushBlob(app, i.content)
	config := fmt.Sprintf(`{"architecture":"amd64","os":"linux","author":%q}`, i.layer)
	i.config = o.pushBlob(app, []byte(config))
	i.manifest = o.pushManifest(tag, v1.MediaTypeImageManifest, fmt.Sprintf(
		`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":%d},"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, i.config, len(config), v1.MediaTypeImageLayer, i.layer, size))
	return i
}

var noises atomic.Uint64

// noise returns new content with each call.
func noise(size int) []byte {
	content, n := make([]byte, size), noises.Add(1)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(content)
	return content
}

// process is a cache with its server, as in its program.
type process struct {
	url, debug, volume string
	stop               func()
}

func (p *process) tag(tag string) string   { return p.url + "/v2/" + app + "/manifests/" + tag }
func (p *process) blob(blob string) string { return p.url + "/v2/" + app + "/blobs/" + blob }

// blobFile returns the path of a stored blob.
func (p *process) blobFile(blob digest.Digest) string {
	return filepath.Join(p.volume, "docker/registry/v2/blobs", blob.Algorithm().String(), blob.Encoded()[:2], blob.Encoded(), "data")
}

func (p *process) has(blob digest.Digest) bool {
	_, err := os.Stat(p.blobFile(blob))
	return err == nil
}

// withPassword gives the cache credentials.
func withPassword(c *registry.Config) { c.Proxy.Username, c.Proxy.Password = "robot", "pass-word" }

// withLimit limits the number of stored bytes. With a limit of 1, nothing is stored.
func withLimit(bytes int64) func(*registry.Config) {
	return func(c *registry.Config) { c.Cache.Limit = bytes }
}

// start starts a cache of an upstream, on a new volume or on that of an earlier cache.
func start(t *testing.T, upstream, volume string, changes ...func(*registry.Config)) *process {
	t.Helper()
	p := &process{url: "http://" + freeAddress(t), debug: "http://" + freeAddress(t), volume: volume}
	file := filepath.Join(t.TempDir(), "config.yml")
	content := fmt.Sprintf("version: 0.1\nproxy: {remoteurl: %q}\nstorage: {filesystem: {rootdirectory: %q}}\n"+
		"http: {addr: %q, draintimeout: 50ms, debug: {addr: %q}}\n",
		upstream, volume, strings.TrimPrefix(p.url, "http://"), strings.TrimPrefix(p.debug, "http://"))
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := registry.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(config)
	}
	if registry.IsVirtual(t) {
		address, stop := registry.ServeVirtually(t, config, &logs)
		p.url, p.stop = "http://"+address, stop
		t.Cleanup(stop)
		return p
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- registry.Serve(ctx, config, &logs) }()
	p.stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(p.stop)
	await(t, "the cache answers", func() bool {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
		return get(t, p.url+"/v2/").status != 0
	})
	return p
}

// logs contains the logs of all caches of this process.
var logs log

type log struct {
	mu      sync.Mutex
	content bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.content.Write(p)
}

func (l *log) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.content.Bytes(), []byte(part))
}

// freeAddress returns an address that no client uses for its end of a connection.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// answer is an answer to a client.
type answer struct {
	status int // 0 if no header arrived
	header http.Header
	length int64 // from the header, or -1
	body   []byte
	err    error
	took   time.Duration // until the header arrived
}

func (a answer) String() string {
	return fmt.Sprintf("%d after %s, %d bytes, %v: %.200q", a.status, a.took.Round(time.Millisecond), len(a.body), a.err, a.body)
}

// is reports whether the answer is complete and its body is content.
func (a answer) is(content []byte) bool {
	return a.status == http.StatusOK && a.err == nil && bytes.Equal(a.body, content)
}

func (a answer) digest() string { return a.header.Get("Docker-Content-Digest") }
func (a answer) stale() bool    { return a.header.Get("Warning") != "" }

const (
	// clientPatience is longer than any answer may take.
	clientPatience = 10 * time.Second
	// busyPatience replaces clientPatience for a test in real time, on a busy machine.
	busyPatience = time.Minute
)

func get(t *testing.T, url string, header ...string) answer {
	t.Helper()
	return ask(t.Context(), http.MethodGet, url, header...)
}

func head(t *testing.T, url string) answer {
	t.Helper()
	return ask(t.Context(), http.MethodHead, url)
}

// ask sends a request, with a timeout.
func ask(ctx context.Context, method, url string, header ...string) (a answer) {
	patience := busyPatience
	if registry.InMemory(url) {
		patience = clientPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return answer{err: err}
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	begin := time.Now()
	response, err := registry.NewTransport().RoundTrip(request)
	if a.took = time.Since(begin); err != nil {
		a.err = err
		return a
	}
	defer func() { _ = response.Body.Close() }()
	a.status, a.header, a.length = response.StatusCode, response.Header, response.ContentLength
	a.body, a.err = io.ReadAll(response.Body)
	return a
}

// await waits until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	patience := busyPatience
	if registry.IsVirtual(t) {
		patience = clientPatience
	}
	if !within(t, patience, condition) {
		t.Fatalf("not within %s: %s", patience, what)
	}
}

// within reports whether the condition becomes true within limit.
func within(t *testing.T, limit time.Duration, condition func() bool) bool {
	t.Helper()
	return wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, limit, true,
		func(context.Context) (bool, error) { return condition(), nil }) == nil
}
