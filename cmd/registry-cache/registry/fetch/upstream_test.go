package fetch

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	_ "github.com/distribution/distribution/v3/manifest/ocischema"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

const limit = time.Minute // met only by what hangs

// upstream is a registry with blobs and manifests, whose answers wait where a test wants it.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	contents map[string][]byte // by digest
	gets     map[string]int    // by digest
	heads    map[string]int
	// middle is called in the middle of each answer to a GET of a blob; false cuts the answer.
	middle func(ctx context.Context) bool
	// wrong changes what is sent, if it is set.
	wrong func([]byte) []byte
	// status is answered instead of a blob, if it is set.
	status int
}

func newUpstream(t testing.TB) *upstream {
	t.Helper()
	u := &upstream{contents: map[string][]byte{}, gets: map[string]int{}, heads: map[string]int{}, middle: func(context.Context) bool { return true }}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

// add adds a blob of random content.
func (u *upstream) add(t testing.TB, size int) digest.Digest {
	t.Helper()
	content := make([]byte, size)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	return u.put(content)
}

func (u *upstream) put(content []byte) digest.Digest {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := digest.FromBytes(content)
	u.contents[key.String()] = content
	return key
}

// tag gives a manifest a second name.
func (u *upstream) tag(name string, manifest digest.Digest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.contents[name] = u.contents[manifest.String()]
}

func (u *upstream) asked(content digest.Digest) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gets[content.String()]
}

func (u *upstream) looked(content digest.Digest) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.heads[content.String()]
}

// ServeHTTP implements http.Handler.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	u.mu.Lock()
	content, found := u.contents[key]
	status, middle, wrong := u.status, u.middle, u.wrong
	if r.Method == http.MethodGet {
		u.gets[key]++
	} else {
		u.heads[key]++
	}
	u.mu.Unlock()
	switch {
	case r.URL.Path == "/v2/":
		return
	case !found:
		http.NotFound(w, r)
		return
	case status != 0 && r.Method == http.MethodGet:
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(content).String())
	if wrong != nil && r.Method == http.MethodGet {
		content = wrong(content)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.Header().Set("Content-Type", "application/octet-stream")
	if strings.Contains(r.URL.Path, "/manifests/") {
		w.Header().Set("Content-Type", v1.MediaTypeImageManifest)
	}
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(content[:len(content)/2])
	_ = http.NewResponseController(w).Flush()
	if !middle(r.Context()) {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(content[len(content)/2:])
}

// hold makes answers wait in their middle, until release is called or the client leaves; left is closed when one has.
func (u *upstream) hold() (release func(), left <-chan struct{}) {
	open, gone := make(chan struct{}), make(chan struct{})
	var once sync.Once
	u.mu.Lock()
	defer u.mu.Unlock()
	u.middle = func(ctx context.Context) bool {
		select {
		case <-open:
		case <-ctx.Done():
			once.Do(func() { close(gone) })
		}
		return true
	}
	return sync.OnceFunc(func() { close(open) }), gone
}

// newCache is distribution as a cache of the upstream, with the group that it uses.
func newCache(t testing.TB, u *upstream) (*httptest.Server, *Group) {
	t.Helper()
	config := configOf(t, u)
	use(t, config)
	return serve(t, config), groupOf(config)
}

// plainCache is distribution without the group.
func plainCache(t testing.TB, u *upstream) *httptest.Server {
	t.Helper()
	return serve(t, configOf(t, u))
}

func configOf(t testing.TB, u *upstream) *configuration.Configuration {
	t.Helper()
	return &configuration.Configuration{
		Storage: configuration.Storage{"filesystem": configuration.Parameters{"rootdirectory": t.TempDir()}},
		Proxy:   configuration.Proxy{RemoteURL: u.URL},
	}
}

func use(t testing.TB, config *configuration.Configuration) {
	t.Helper()
	root, _ := config.Storage["filesystem"]["rootdirectory"].(string)
	if err := Use(config, root); err != nil {
		t.Fatal(err)
	}
	groupOf(config).patience = patient
}

// patient is how long a test may take until an upstream that it holds counts as one that hangs.
const patient = time.Hour

func groupOf(config *configuration.Configuration) *Group {
	group, _ := config.Middleware["storage"][0].Options[groupOption].(*Group)
	return group
}

// patientGroup is a group for which nothing hangs by itself.
func patientGroup(t *testing.T) *Group {
	t.Helper()
	group := NewGroup(t.TempDir())
	group.patience = patient
	return group
}

func serve(t testing.TB, config *configuration.Configuration) *httptest.Server {
	t.Helper()
	app := handlers.NewApp(t.Context(), config)
	server := httptest.NewServer(app)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = app.Shutdown() })
	return server
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("not within %s: %s", limit, what)
	}
}
