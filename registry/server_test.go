package registry

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	containerdlog "github.com/containerd/log"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// testServer is a cache in the process of the test, so several can run at once.
type testServer struct {
	*httptest.Server
	volume  string
	stop    func()
	running atomic.Int32 // running requests
}

// blob and manifest return URLs.
func (s *testServer) blob(of string) string { return s.URL + "/v2/" + repositoryName + "/blobs/" + of }
func (s *testServer) manifest(of string) string {
	return s.URL + "/v2/" + repositoryName + "/manifests/" + of
}

// newTestServer starts a cache of the upstream, on a new volume or on that of an earlier cache.
func newTestServer(t *testing.T, u *testUpstream, volume string) *testServer {
	t.Helper()
	return newServerWith(t, u, volume, nil)
}

// newServerWith starts a cache with replicas. The configuration file does not offer their options.
func newServerWith(t *testing.T, u *testUpstream, volume string, replicas *upstream.ReplicaOptions) *testServer {
	t.Helper()
	config := (&Config{Cache: cacheKeys{Upstream: "upstream.example", ClientTimeout: 2 * time.Second}}).withDefaults()
	config.Storage.Filesystem.RootDirectory = volume
	config.Proxy.RemoteURL, config.Proxy.TTL = u.URL, new(time.Hour)
	if u.credential != "" {
		config.Proxy.Username, config.Proxy.Password = "robot", u.credential
	}
	var others *upstream.Replicas
	if replicas != nil {
		others = upstream.NewReplicas(*replicas)
	}
	var dial upstream.Dial
	if IsVirtual(t) {
		dial = u.connect
	}
	cache, err := open(t.Context(), config, dial, others)
	if err != nil {
		t.Fatal(err)
	}
	server := &testServer{volume: volume}
	server.Server = newHTTPServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.running.Add(1)
		defer server.running.Add(-1)
		cache.ServeHTTP(w, r)
	}))
	server.stop = sync.OnceFunc(func() {
		server.CloseClientConnections()
		server.Close()
		cache.close()
	})
	t.Cleanup(server.stop)
	return server
}

// TestMain drops all logs, including those of distribution and of containerd's client: thousands of
// lines would hide a failed test.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := containerdlog.SetLevel("panic"); err != nil {
		panic(err)
	}
	go makeApps()
	os.Exit(m.Run())
}

// stored returns the number of blobs on the volume.
func (s *testServer) stored(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.volume, "docker/registry/v2/blobs/sha256/*/*/data"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// await waits until the condition holds, at most 20 s, or a minute of real time on a busy machine.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit := time.Minute
	if IsVirtual(t) {
		limit = 20 * time.Second
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, limit, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("not within %s: %s", limit, what)
	}
}
