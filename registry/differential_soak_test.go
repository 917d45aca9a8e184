package registry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

const (
	// soakTries is how many times in a row a pull that succeeds directly may fail through the cache. A
	// change of the profile breaks running pulls, and the kubelet retries.
	soakTries    = 3
	soakPatience = 10 * time.Second
)

// soakWorld is an upstream whose profile changes while clients pull.
type soakWorld struct {
	*testUpstream
	random  *lockedRandom
	cache   *testServer
	pool    map[digest.Digest][]byte
	blobs   []v1.Descriptor
	profile atomic.Pointer[soakProfile]

	pulls, again, failed, hostile atomic.Int64
}

type soakProfile struct {
	http.Handler
	registryprofile.Profile
	// wrong is set while the upstream may send wrong bytes.
	wrong bool
}

// change gives the upstream the profile of a known registry, or a random one.
func (w *soakWorld) change(other string) {
	p := diffRandom(w.random.Uint64()).Profile
	p.Username, p.Password = "", ""
	p.Silence, p.TokenHangs = min(p.Silence, 2000), false // otherwise nothing happens for a long time
	if p.TokenRetryAfter != "" {
		p.TokenRetryAfter = "2"
	}
	for i := range p.Answers {
		if p.Answers[i].RetryAfter == "60" {
			p.Answers[i].RetryAfter = "2"
		}
	}
	sites := map[string]string{
		registryprofile.Port: other, registryprofile.Sibling: other, registryprofile.Private: other,
		registryprofile.Foreign: strings.Replace(other, "127.0.0.1", "localhost", 1),
	}
	before := w.profile.Load()
	now := &soakProfile{Profile: p, Handler: p.Handler(http.HandlerFunc(w.troubled), sites)}
	now.wrong = p.Damaged || p.Ranges != "" || p.Gzip || before != nil && before.Damaged
	w.profile.Store(now)
}

// troubled is the registry behind the profile. It breaks the cache's requests, unless the registry
// does not support ranges: then no download can be resumed.
func (w *soakWorld) troubled(rw http.ResponseWriter, r *http.Request) {
	if w.profile.Load().Ranges != "" || !trouble(w.random).answer(w.testUpstream, rw, r) {
		counting := w.counting(rw, r)
		w.registry.ServeHTTP(&counting, r)
	}
}

// pull pulls a blob as containerd does, with a new authorizer.
func (w *soakWorld) pull(blob v1.Descriptor, mirrors ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), soakPatience)
	defer cancel()
	client := &http.Client{Transport: w.cache.Client().Transport}
	authorizer := docker.NewDockerAuthorizer(docker.WithAuthClient(client))
	hosts := containerdHosts(client, w.URL, mirrors...)
	for i := range hosts {
		hosts[i].Authorizer = authorizer
	}
	resolver := docker.NewResolver(docker.ResolverOptions{
		Hosts: func(string) ([]docker.RegistryHost, error) { return hosts, nil },
	})
	fetcher, err := resolver.Fetcher(ctx, nameOf("v1"))
	if err != nil {
		return err
	}
	blob.MediaType = v1.MediaTypeImageLayer
	return download(ctx, fetcher, blob)
}

// node pulls a blob through the cache. If that fails, the same pull must also fail directly.
func (w *soakWorld) node(t *testing.T) {
	t.Helper()
	blob := w.blobs[w.random.IntN(len(w.blobs))]
	w.pulls.Add(1)
	profile := w.profile.Load()
	var through error
	for range soakTries {
		if through = w.pull(blob, w.cache.URL); through == nil {
			return
		}
		if direct := w.pull(blob); direct != nil || w.profile.Load() != profile {
			w.failed.Add(1)
			return
		}
		w.again.Add(1)
	}
	t.Errorf("a pull fails %d times through the cache only: %v; profile %+v", soakTries, through, profile.Profile)
}

// attack sends requests that only clients other than containerd send.
func (w *soakWorld) attack(t *testing.T) {
	t.Helper()
	w.hostile.Add(1)
	blob := w.blobs[w.random.IntN(len(w.blobs))]
	content := w.pool[blob.Digest]
	from := w.random.IntN(len(content))
	target, header := w.cache.blob(blob.Digest.String()), http.Header{}
	want := content
	switch w.random.IntN(7) {
	case 0:
		_ = freeze(t, w.cache, blob.Digest).Close()
		return
	case 1:
		for i := range 20 {
			_, _, _ = w.try(t, http.MethodHead, fmt.Sprintf("%s/v2/x%d/y/blobs/%s", w.cache.URL, w.random.IntN(1<<20)+i, blob.Digest), nil)
		}
		return
	case 2:
		header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		want = content[from:]
	case 3:
		header.Set("Range", fmt.Sprintf("bytes=-%d", len(content)-from))
		want = content[from:]
	case 4: // a blob as a manifest
		if status, _, _ := w.try(t, http.MethodGet, w.cache.manifest(blob.Digest.String()), nil); status == http.StatusOK {
			t.Errorf("blob %s is a manifest", blob.Digest)
		}
		return
	case 5:
		if status, _, err := w.try(t, http.MethodGet, w.cache.blob("uploads/x"), nil); err == nil && (status < 400 || status > 499) {
			t.Errorf("a path of uploads: %d", status)
		}
		return
	}
	wrong := w.profile.Load().wrong
	status, got, err := w.try(t, http.MethodGet, target, header)
	if status == http.StatusOK {
		want = content
	}
	wrong = wrong || w.profile.Load().wrong
	if err == nil && status < 300 && !bytes.Equal(got, want) && (!wrong || status == http.StatusOK) {
		t.Errorf("%v of %s: a complete %d with %d other bytes, want %d", header, blob.Digest, status, len(got), len(want))
	}
}

// try sends one request to the cache.
func (w *soakWorld) try(t *testing.T, method, target string, header http.Header) (int, []byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soakPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range header {
		request.Header[key] = values
	}
	response, err := w.cache.Client().Transport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if response.Header.Get("Content-Encoding") == "gzip" && err == nil {
		var decoded io.Reader
		if decoded, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(decoded)
		}
	}
	return response.StatusCode, body, err
}

// TestSoakProfiles: clients, one in five of them hostile, use a cache whose upstream imitates
// changing registries and breaks requests, on a volume that is too small. No complete answer
// contains wrong bytes, each pull that succeeds directly also succeeds through the cache, and
// nothing grows.
func TestSoakProfiles(t *testing.T) {
	const blobs, size, changes = 200, 300 << 10, 10
	w := &soakWorld{testUpstream: newTestUpstream(t, false), random: &lockedRandom{Rand: rand.New(rand.NewPCG(2, 2))}, pool: map[digest.Digest][]byte{}}
	for range blobs {
		content := make([]byte, 1+w.random.IntN(size))
		for i := range content {
			content[i] = byte(w.random.Rand.Uint32())
		}
		blob := w.pushBlob(t, content)
		w.blobs, w.pool[blob.Digest] = append(w.blobs, blob), content
	}
	w.cache = newTestServer(t, w.testUpstream, mount(t, "size=20m"))
	other := httptest.NewServer(w.testUpstream)
	t.Cleanup(func() { other.CloseClientConnections(); other.Close() })
	w.change(other.URL)
	undo := w.breakWith(t, fault{answer: func(_ *testUpstream, rw http.ResponseWriter, r *http.Request) bool {
		w.profile.Load().ServeHTTP(rw, r)
		return true
	}})
	period := max(time.Second, min(*soak/changes, 6*time.Second))
	end := time.Now().Add(*soak)
	var running sync.WaitGroup
	for i := range *clients {
		running.Go(func() {
			for time.Now().Before(end) {
				if i%5 == 0 {
					w.attack(t)
				} else {
					w.node(t)
				}
			}
		})
	}
	var early, earlyFiles int64
	var earlyRoutines int
	profiles := 1
	for quarter := time.Now().Add(*soak / 4); time.Now().Before(end); profiles++ {
		<-time.After(period)
		if early == 0 && time.Now().After(quarter) {
			early, earlyFiles, earlyRoutines = heap(), descriptors(t), runtime.NumGoroutine()
		}
		w.change(other.URL)
	}
	running.Wait()
	undo()
	late, files, routines := heap(), descriptors(t), runtime.NumGoroutine()
	t.Logf("%d profiles, %d pulls, %d of them tried again, %d fail also directly, %d hostile; %d to %d MiB, %d to %d descriptors, %d to %d goroutines",
		profiles, w.pulls.Load(), w.again.Load(), w.failed.Load(), w.hostile.Load(), early>>20, late>>20, earlyFiles, files, earlyRoutines, routines)
	if late > 2*early+(32<<20) || files > earlyFiles+100 || routines > earlyRoutines+100 {
		t.Error("memory, descriptors or goroutines grew")
	}
	left := w.blobs
	for until := time.Now().Add(time.Minute); len(left) > 0 && time.Now().Before(until); <-time.After(100 * time.Millisecond) {
		left = slices.DeleteFunc(slices.Clone(left), func(blob v1.Descriptor) bool {
			status, body, err := w.try(t, http.MethodGet, w.cache.blob(blob.Digest.String()), nil)
			return status == http.StatusOK && err == nil && bytes.Equal(body, w.pool[blob.Digest])
		})
	}
	if len(left) > 0 {
		t.Errorf("the cache does not serve %d of %d blobs within a minute after all trouble", len(left), len(w.blobs))
	}
}
