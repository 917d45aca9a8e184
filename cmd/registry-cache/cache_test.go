package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	upstreamregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

const (
	repository = "library/app"
	layers     = 3
	patience   = time.Minute // limits waits; only a process that hangs reaches it
)

// upstream is a real registry that logs the requests of caches.
type upstream struct {
	url      string
	close    func()
	mu       sync.Mutex
	requests []string
	gate     *gate
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	// The tests push images with go-containerregistry. These requests are not logged.
	handler := upstreamregistry.New(upstreamregistry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.UserAgent(), "go-containerregistry") {
			u.mu.Lock()
			u.requests = append(u.requests, r.Method+" "+r.URL.Path)
			u.mu.Unlock()
			if strings.Contains(r.URL.Path, "/blobs/") {
				u.wait(r)
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	u.url, u.close = server.URL, server.Close
	return u
}

// gate closes reached when a request arrives, and holds the request back until a test closes open.
type gate struct{ reached, open chan struct{} }

// holdNextBlob makes the next request for a blob wait at the returned gate.
func (u *upstream) holdNextBlob() gate {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gate = &gate{reached: make(chan struct{}), open: make(chan struct{})}
	return *u.gate
}

func (u *upstream) wait(r *http.Request) {
	u.mu.Lock()
	gate := u.gate
	u.gate = nil
	u.mu.Unlock()
	if gate == nil {
		return
	}
	close(gate.reached)
	select {
	case <-gate.open:
	case <-r.Context().Done():
	}
}

// blobRequests returns the requests for blobs since the last call.
func (u *upstream) blobRequests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var blobs []string
	for _, request := range u.requests {
		if strings.Contains(request, "/blobs/") {
			blobs = append(blobs, request)
		}
	}
	u.requests = nil
	return blobs
}

// push pushes a new image and returns its reference without the registry.
func (u *upstream) push(t *testing.T, tag string) string {
	t.Helper()
	image, err := random.Image(64<<10, layers)
	if err != nil {
		t.Fatal(err)
	}
	reference := parse(t, u.url, repository+":"+tag)
	if err := remote.Write(reference, image); err != nil {
		t.Fatal(err)
	}
	return repository + ":" + tag
}

func parse(t *testing.T, url, image string) name.Reference {
	t.Helper()
	reference, err := name.ParseReference(strings.TrimPrefix(url, "http://")+"/"+image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

// servedCache is a running `registry-cache serve`.
type servedCache struct {
	url, debugURL, storage string
	log                    *syncBuffer
	stop                   context.CancelFunc
	exit                   chan int
}

// serve starts a cache with a shortened version of the configuration that the extension deploys,
// and waits until it answers.
func serve(t *testing.T, remoteURL string) *servedCache {
	t.Helper()
	s := &servedCache{url: "http://" + freeAddress(t), debugURL: "http://" + freeAddress(t), storage: t.TempDir(), log: &syncBuffer{}, exit: make(chan int, 1)}
	config := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(config, []byte(s.config(remoteURL)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.exit <- runCommand(ctx, s.log, "serve", config) }()
	t.Cleanup(stop)
	s.waitUntil(t, "the cache answers", func(ctx context.Context) (bool, error) {
		_, status := get(ctx, t, s.url+"/v2/")
		return status == http.StatusOK, nil
	})
	return s
}

func (s *servedCache) config(remoteURL string) string {
	return fmt.Sprintf(`version: 0.1
log: {fields: {service: registry}}
storage:
  delete: {enabled: true}
  filesystem: {rootdirectory: %q}
  tag: {concurrencylimit: 5}
http:
  addr: %s
  draintimeout: 15s
  debug: {addr: %s, prometheus: {enabled: true, path: /metrics}}
health:
  storagedriver: {enabled: true, interval: 10s, threshold: 3}
proxy: {remoteurl: %s, ttl: 2h}
`, s.storage, strings.TrimPrefix(s.url, "http://"), strings.TrimPrefix(s.debugURL, "http://"), remoteURL)
}

func runCommand(ctx context.Context, log io.Writer, args ...string) int {
	streams := program.Streams{Out: log, Err: log}
	root := newRootCommand(streams) //nolint:contextcheck // distribution listens without a context; Serve shuts it down
	return program.Run(ctx, root, streams, args)
}

// waitUntil waits until condition is true.
func (s *servedCache) waitUntil(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, condition); err != nil {
		t.Fatalf("%s: %v after %s; the log:\n%s", what, err, patience, s.log)
	}
}

// pull pulls an image as a node does, and checks every byte.
func (s *servedCache) pull(t *testing.T, image string) {
	t.Helper()
	if err := pull(parse(t, s.url, image)); err != nil {
		t.Fatal(err)
	}
}

func pull(reference name.Reference) error {
	image, err := remote.Image(reference)
	if err != nil {
		return err
	}
	if _, err := image.RawConfigFile(); err != nil {
		return err
	}
	contents, err := image.Layers()
	if err != nil {
		return err
	}
	if len(contents) != layers {
		return fmt.Errorf("pulled %d layers, want %d", len(contents), layers)
	}
	for _, layer := range contents {
		content, err := layer.Compressed() // fails at the end of the stream if the digest differs
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return err
		}
	}
	return nil
}

// fetchConfig fetches the manifest and the config blob of an image.
func fetchConfig(reference name.Reference) error {
	image, err := remote.Image(reference)
	if err != nil {
		return err
	}
	_, err = image.RawConfigFile()
	return err
}

// awaitStored waits until the cache has stored the blobs of an image. The cache answers a pull
// before it has stored them.
func (s *servedCache) awaitStored(t *testing.T, blobs int) {
	t.Helper()
	s.waitUntil(t, "blobs are stored", func(context.Context) (bool, error) {
		files, err := filepath.Glob(filepath.Join(s.storage, "docker/registry/v2/repositories", repository, "_layers/sha256/*/link"))
		return len(files) == blobs, err
	})
}

func (s *servedCache) metric(t *testing.T, series string) string {
	t.Helper()
	body, _ := get(t.Context(), t, s.debugURL+"/metrics")
	match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(body)
	if match == nil {
		t.Fatalf("no metric %s in:\n%s", series, body)
	}
	return match[1]
}

func get(ctx context.Context, t *testing.T, url string) (body string, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), 0
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content), response.StatusCode
}

// freeAddress returns an address for a cache that is started later, possibly more than once.
// Another process may get the port in the meantime, but probably not on this loopback address.
func freeAddress(t testing.TB) string {
	t.Helper()
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil { // systems other than Linux have only one loopback address
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
