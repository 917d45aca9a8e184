package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // for the registry
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// testRegistry is distribution on a port of this machine. It logs every request that writes.
type testRegistry struct {
	host string

	mu       sync.Mutex
	writes   []string
	failFrom int    // if positive, the number of the first write that fails
	password string // if set, every request needs it
}

func newTestRegistry(t *testing.T) *testRegistry {
	t.Helper()
	app := handlers.NewApp(t.Context(), &configuration.Configuration{Storage: configuration.Storage{"inmemory": configuration.Parameters{}}})
	r := &testRegistry{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if _, password, _ := request.BasicAuth(); r.password != "" && password != r.password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.fails(request) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		app.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func (r *testRegistry) fails(request *http.Request) bool {
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, request.Method+" "+request.URL.Path)
	return r.failFrom > 0 && len(r.writes) >= r.failFrom
}

// reset forgets the writes, and lets those from a number on fail. 0 means none.
func (r *testRegistry) reset(failFrom int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes, r.failFrom = nil, failFrom
}

func (r *testRegistry) written() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

// tagged returns whether a write sets a tag of the version, not that of referrers.
func tagged(write string) bool {
	_, reference, ok := strings.Cut(write, "/manifests/")
	return ok && !strings.HasPrefix(reference, "sha256")
}

// publish runs the command, and returns its exit code, standard output and error.
func (s settings) publish(t *testing.T, options ...remote.Option) (code int, out string, err error) {
	t.Helper()
	var printed strings.Builder
	options = append([]remote.Option{remote.WithRetryBackoff(remote.Backoff{Steps: 1})}, options...)
	err = s.run(t.Context(), program.Streams{Out: &printed, Err: io.Discard}, options...)
	return program.ExitCode(err), printed.String(), err
}

// mustPublish returns the standard output.
func (s settings) mustPublish(t *testing.T) string {
	t.Helper()
	_, out, err := s.publish(t)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// newSettings returns settings for the repository with random images.
func newSettings(t *testing.T, registry string) settings {
	t.Helper()
	return settings{
		registry: registry, root: "../..", images: newImages(t, versionOf(t)), out: filepath.Join(t.TempDir(), "published"),
	}
}

func versionOf(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

// newImages returns the folder of a layout as `make images` writes it.
func newImages(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	images, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sbom"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"registry-cache", "registry-cache-admission", "registry-cache-extension"} {
		var index v1.ImageIndex = empty.Index
		for _, architecture := range []string{"amd64", "arm64"} {
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add:        newImage(t, version, architecture),
				Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
			})
		}
		if err := images.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name})); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"index", "linux-amd64", "linux-arm64"} {
			sbom := fmt.Sprintf(`{"name": "%s of %s"}`, part, name)
			if err := os.WriteFile(filepath.Join(dir, "sbom", name+"-"+part+".spdx.json"), []byte(sbom), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func newImage(t *testing.T, version, architecture string) v1.Image {
	t.Helper()
	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: time.Unix(1700000000, 0)}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.version": version, "org.opencontainers.image.revision": strings.Repeat("a", 40),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return mutate.MediaType(image, types.OCIManifestSchema1)
}

// login stores the password as `docker login` does.
func login(t *testing.T, host, password string) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]any{"username": "a", "password": password}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

// roundTripper is a function that answers requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
