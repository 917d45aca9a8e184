package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sirupsen/logrus"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // distribution logs every request
	os.Exit(m.Run())
}

// logBuffer is a log that can be read while it is being written.
type logBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// asAgent is a transport that sends all requests with the user agent.
type asAgent string

func (a asAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

type upstream struct {
	*httptest.Server
	log *logBuffer
}

func start(t *testing.T, middlewares ...Middleware) upstream {
	t.Helper()
	log := &logBuffer{}
	handler, err := NewHandler(t.Context(), t.TempDir(), log, middlewares...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Start()
	t.Cleanup(server.Close)
	return upstream{server, log}
}

func (u upstream) tag(t *testing.T, image string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(strings.TrimPrefix(u.URL, "http://") + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

func (u upstream) push(t *testing.T, image string) v1.Image {
	t.Helper()
	img, err := random.Image(10_000, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(u.tag(t, image), img, remote.WithUserAgent("registry-cache-testbed/1")); err != nil {
		t.Fatal(err)
	}
	return img
}

// pull reads everything that a pull by a client with the user agent would read.
func (u upstream) pull(t *testing.T, image, userAgent string) error {
	t.Helper()
	img, err := remote.Image(u.tag(t, image), remote.WithTransport(asAgent(userAgent)))
	if err != nil {
		return err
	}
	if _, err := img.RawConfigFile(); err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return err
		}
		_ = content.Close()
	}
	return nil
}

func (u upstream) records(t *testing.T) accesslog.Records {
	t.Helper()
	response, err := u.Client().Get(u.URL + accesslog.SettlePath + "?" + t.Name())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	u.CloseClientConnections()
	u.Close()
	records, err := accesslog.NewReader(&u.log.Buffer).Until(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// TestPullsAreDistinguished: the log distinguishes pushes and pulls of different clients.
func TestPullsAreDistinguished(t *testing.T) {
	u := start(t)
	img := u.push(t, "shop/web:v1")
	for _, userAgent := range []string{"containerd/v2.3.4", "Go-http-client/1.1"} {
		if err := u.pull(t, "shop/web:v1", userAgent); err != nil {
			t.Fatal(err)
		}
	}
	records := u.records(t).Repository("shop/web")
	evidence := records.Evidence()
	if want := "4 blob GETs by cache, 4 by nodes, 4 blobs more than once"; evidence.String() != want {
		t.Errorf("evidence %q, want %q", evidence, want)
	}
	if pushed := records.By(accesslog.AskerHarness).Filter(func(r accesslog.Record) bool { return r.Method == http.MethodPut }); len(pushed) != 5 {
		t.Errorf("%d PUT requests by the harness, want 4 blobs and a manifest", len(pushed))
	}
	if got, want := evidence.Bytes[accesslog.AskerNode], size(t, img); got != want {
		t.Errorf("bytes by node %d, want %d", got, want)
	}
}

// TestRealCacheIsRecognised pulls as containerd does, through distribution's pull-through cache.
func TestRealCacheIsRecognised(t *testing.T) {
	u := start(t)
	u.push(t, "shop/web:v1")
	settings := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %q}}\nproxy: {remoteurl: %q}\n", t.TempDir(), u.URL)
	config, err := configuration.Parse(strings.NewReader(settings))
	if err != nil {
		t.Fatal(err)
	}
	cache := upstream{Server: httptest.NewServer(handlers.NewApp(t.Context(), config))}
	defer cache.Close()
	if err := cache.pull(t, "shop/web:v1", "containerd/v2.3.4"); err != nil {
		t.Fatal(err)
	}
	records := u.records(t)
	if got, want := records.Evidence().String(), "4 blob GETs by cache, 0 by nodes"; got != want {
		t.Errorf("evidence %q, want %q", got, want)
	}
	if askers := records.Pulls().Askers(); len(askers) != 1 || askers[0] != accesslog.AskerCache {
		t.Errorf("askers %v, want the cache only", askers)
	}
}

func TestMiddlewareIsSeenInTheLog(t *testing.T) {
	broken := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
				http.Error(w, "broken", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	u := start(t, broken)
	u.push(t, "web:v1")
	if err := u.pull(t, "web:v1", "containerd/v2.3.4"); err == nil {
		t.Fatal("the pull went through the middleware")
	}
	failed := u.records(t).Manifests().By(accesslog.AskerNode).Gets()
	if len(failed) == 0 || failed[0].Status != http.StatusForbidden || failed[0].Bytes != int64(len("broken\n")) {
		t.Errorf("records of the failed pull: %+v", failed)
	}
}

// size returns the number of bytes that a pull transfers: the manifest, the config, and the layers.
func size(t *testing.T, img v1.Image) int64 {
	t.Helper()
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := img.Size()
	if err != nil {
		t.Fatal(err)
	}
	sum += manifest.Config.Size
	for _, layer := range manifest.Layers {
		sum += layer.Size
	}
	return sum
}
