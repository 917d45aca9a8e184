package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	dto "github.com/prometheus/client_model/go"
)

// answer is what a client got.
type answer struct {
	status int
	body   []byte
	err    error
}

func get(ctx context.Context, cache *httptest.Server, path string) answer {
	return getRange(ctx, cache, path, "")
}

// getRange asks for a part, unless it is "".
func getRange(ctx context.Context, cache *httptest.Server, path, part string) answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cache.URL+path, nil)
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("Accept", v1.MediaTypeImageManifest)
	if part != "" {
		request.Header.Set("Range", part)
	}
	response, err := cache.Client().Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, body, err}
}

func blobPath(repository string, blob digest.Digest) string {
	return "/v2/" + repository + "/blobs/" + blob.String()
}

// pull asks for a path in the background.
func pull(ctx context.Context, cache *httptest.Server, path string) <-chan answer {
	got := make(chan answer, 1)
	go func() { got <- get(ctx, cache, path) }()
	return got
}

// joined waits until so many clients are in the flight of the blob.
func joined(t *testing.T, g *Group, blob digest.Digest, clients int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d clients of one flight", clients), func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		f := g.flights[blob]
		return f != nil && f.clients == clients
	})
}

func (a answer) require(t *testing.T, blob digest.Digest) {
	t.Helper()
	if a.err != nil || a.status != http.StatusOK || digest.FromBytes(a.body) != blob {
		t.Errorf("status %d, %d bytes of another digest than %s, error %v", a.status, len(a.body), blob, a.err)
	}
}

func counted(t *testing.T, kind string) float64 {
	t.Helper()
	var metric dto.Metric
	if err := coalesced.WithLabelValues(kind).Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetCounter().GetValue()
}

func TestManyClientsCostOneFetch(t *testing.T) {
	for name, size := range map[string]int{"a large blob": 3<<20 + 17, "one that fits into a buffer": 1000, "one of one byte": 1} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			cache, group := newCache(t, u)
			blob := u.add(t, size)
			release, _ := u.hold()
			before := counted(t, "blob")
			var clients []<-chan answer
			for range 8 {
				clients = append(clients, pull(t.Context(), cache, blobPath("library/app", blob)))
			}
			joined(t, group, blob, len(clients))
			group.mu.Lock()
			f := group.flights[blob]
			group.mu.Unlock()
			release()
			for _, client := range clients {
				(<-client).require(t, blob)
			}
			if coalesced := counted(t, "blob") - before; coalesced != 7 {
				t.Errorf("%v requests counted, want 7", coalesced)
			}
			get(t.Context(), cache, blobPath("library/app", blob)).require(t, blob)
			if asked := u.asked(blob); asked != 1 {
				t.Errorf("the upstream was asked %d times", asked)
			}
			eventually(t, "no flight is left", func() bool {
				group.mu.Lock()
				defer group.mu.Unlock()
				return len(group.flights) == 0
			})
			eventually(t, "its file is closed", func() bool {
				_, err := f.look().file.ReadAt(make([]byte, 1), 0)
				return errors.Is(err, os.ErrClosed)
			})
		})
	}
}

func TestAnEmptyBlob(t *testing.T) {
	u := newUpstream(t)
	cache, _ := newCache(t, u)
	blob := u.add(t, 0)
	for range 2 {
		get(t.Context(), cache, blobPath("library/app", blob)).require(t, blob)
	}
}

// A slow upstream must not look like one that hangs: clients get each byte when the cache has it.
func TestBytesDoNotWait(t *testing.T) {
	for _, half := range []int{1, 3000, 4096, 5000, 100_000} {
		t.Run(strconv.Itoa(half), func(t *testing.T) {
			u := newUpstream(t)
			cache, _ := newCache(t, u)
			blob := u.add(t, 2*half)
			release, _ := u.hold()
			defer release()
			came := make(chan error, 1)
			go func() {
				response, err := cache.Client().Get(cache.URL + blobPath("library/app", blob))
				if err == nil {
					defer func() { _ = response.Body.Close() }()
					_, err = io.ReadFull(response.Body, make([]byte, half))
				}
				came <- err
			}()
			select {
			case err := <-came:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(limit):
				t.Errorf("%d bytes that the cache has did not come", half)
			}
		})
	}
}

func TestTheFirstClientLeaves(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 1<<20)
	release, _ := u.hold()
	ctx, leave := context.WithCancel(t.Context())
	first := pull(ctx, cache, blobPath("library/app", blob))
	joined(t, group, blob, 1)
	second := pull(t.Context(), cache, blobPath("library/app", blob))
	joined(t, group, blob, 2)
	leave()
	if got := <-first; !errors.Is(got.err, context.Canceled) {
		t.Errorf("the first client did not leave: %v", got.err)
	}
	joined(t, group, blob, 1)
	release()
	(<-second).require(t, blob)
	if asked := u.asked(blob); asked != 1 {
		t.Errorf("the upstream was asked %d times", asked)
	}
}

func TestTheLastClientLeaves(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 1<<20)
	release, left := u.hold()
	defer release()
	ctx, leave := context.WithCancel(t.Context())
	only := pull(ctx, cache, blobPath("library/app", blob))
	joined(t, group, blob, 1)
	eventually(t, "the upstream is asked", func() bool { return u.asked(blob) == 1 })
	leave()
	<-only
	select {
	case <-left:
	case <-time.After(limit):
		t.Error("the fetch goes on for nobody")
	}
	release()
	eventually(t, "the next client is served", func() bool {
		return get(t.Context(), cache, blobPath("library/app", blob)).status == http.StatusOK
	})
}

// A node that freezes in the middle of a pull must not hold up the others.
func TestAFrozenClient(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 32<<20) // more than sockets keep
	release, _ := u.hold()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cache.URL+blobPath("library/app", blob), nil)
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := cache.Client().Do(request) // reads nothing of the body
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = frozen.Body.Close() }()
	second := pull(t.Context(), cache, blobPath("library/app", blob))
	joined(t, group, blob, 2)
	release()
	select {
	case got := <-second:
		got.require(t, blob)
	case <-time.After(limit):
		t.Error("it waits for the frozen one")
	}
}

func TestTheUpstreamFails(t *testing.T) {
	for name, status := range map[string]int{"an error": http.StatusServiceUnavailable, "no such blob": http.StatusNotFound} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			cache, _ := newCache(t, u)
			blob := u.add(t, 1<<20)
			u.mu.Lock()
			u.status = status
			u.mu.Unlock()
			want := get(t.Context(), plainCache(t, u), blobPath("library/app", blob))
			for range 3 {
				if got := get(t.Context(), cache, blobPath("library/app", blob)); got.status != want.status || got.err != nil {
					t.Errorf("status %d, want %d as without the group; error %v", got.status, want.status, got.err)
				}
			}
			u.mu.Lock()
			u.status = 0
			u.mu.Unlock()
			get(t.Context(), cache, blobPath("library/app", blob)).require(t, blob)
		})
	}
}

func TestTheUpstreamCutsItsAnswer(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 1<<20)
	release, _ := u.hold()
	u.mu.Lock()
	hold := u.middle
	u.middle = func(ctx context.Context) bool {
		hold(ctx)
		return false
	}
	u.mu.Unlock()
	clients := []<-chan answer{pull(t.Context(), cache, blobPath("library/app", blob)), pull(t.Context(), cache, blobPath("library/app", blob))}
	joined(t, group, blob, len(clients))
	release()
	for _, client := range clients {
		if got := <-client; !errors.Is(got.err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(u.contents[blob.String()], got.body) {
			t.Errorf("a cut answer: %d bytes that the blob need not begin with, error %v", len(got.body), got.err)
		}
	}
	u.mu.Lock()
	u.middle = func(context.Context) bool { return true }
	u.mu.Unlock()
	get(t.Context(), cache, blobPath("library/app", blob)).require(t, blob)
}

// Who comes to a fetch that hangs is not bound to it.
func TestAStalledFetch(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 1<<20)
	release, _ := u.hold()
	defer release()
	first := pull(t.Context(), cache, blobPath("library/app", blob))
	joined(t, group, blob, 1)
	group.mu.Lock()
	f := group.flights[blob]
	group.mu.Unlock()
	eventually(t, "half of the blob has come", func() bool { return f.look().written >= 1<<19 })
	f.mu.Lock()
	f.progress = f.progress.Add(-2 * patient)
	f.mu.Unlock()
	u.mu.Lock()
	u.middle = func(context.Context) bool { return true }
	u.mu.Unlock()
	get(t.Context(), cache, blobPath("library/app", blob)).require(t, blob)
	release()
	(<-first).require(t, blob)
}

func TestTwoRepositoriesShareAFetch(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 1<<20)
	release, _ := u.hold()
	first := pull(t.Context(), cache, blobPath("library/app", blob))
	second := pull(t.Context(), cache, blobPath("library/other", blob))
	joined(t, group, blob, 2)
	release()
	(<-first).require(t, blob)
	(<-second).require(t, blob)
	if asked := u.asked(blob); asked != 1 {
		t.Errorf("the upstream was asked %d times", asked)
	}
}

func TestManyClientsCostOneManifest(t *testing.T) {
	u := newUpstream(t)
	cache, _ := newCache(t, u)
	content, err := json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: u.add(t, 10), Size: 10}, Layers: []v1.Descriptor{},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest := u.put(content)
	release, _ := u.hold()
	before := counted(t, "manifest")
	var clients []<-chan answer
	for range 8 {
		clients = append(clients, pull(t.Context(), cache, "/v2/library/app/manifests/"+manifest.String()))
	}
	eventually(t, "the upstream is asked", func() bool { return u.asked(manifest) == 1 })
	ctx, leave := context.WithCancel(t.Context())
	gone := pull(ctx, cache, "/v2/library/app/manifests/"+manifest.String())
	leave()
	<-gone
	release()
	for _, client := range clients {
		(<-client).require(t, manifest)
	}
	if coalesced := counted(t, "manifest") - before; coalesced > 8 {
		t.Errorf("%v requests counted, and one of 9 has fetched", coalesced)
	}
	if asked := u.asked(manifest); asked != 1 {
		t.Errorf("the upstream was asked %d times", asked)
	}
}
