package fetch

import (
	"bytes"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
)

// A node whose download was cut goes on with what it has.
func TestPartsComeOfTheSameFetch(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	const size = 1 << 20
	blob := u.add(t, size)
	release, _ := u.hold()
	parts := map[string]struct {
		from, status int
	}{
		"bytes=0-": {0, http.StatusPartialContent}, "bytes=700000-": {700_000, http.StatusPartialContent},
		"bytes=5-9": {0, http.StatusOK}, "bytes=2000000-": {0, http.StatusOK}, "lines=1-": {0, http.StatusOK},
	}
	answers := map[string]chan answer{}
	for part := range parts {
		got := make(chan answer, 1)
		answers[part] = got
		go func() { got <- getRange(t.Context(), cache, blobPath("library/app", blob), part) }()
	}
	joined(t, group, blob, len(parts))
	release()
	for part, want := range parts {
		got := <-answers[part]
		if got.err != nil || got.status != want.status || !bytes.Equal(got.body, u.contents[blob.String()][want.from:]) {
			t.Errorf("%s: status %d, %d bytes, error %v; want the rest from %d on", part, got.status, len(got.body), got.err, want.from)
		}
	}
	if asked := u.asked(blob); asked != 1 {
		t.Errorf("the upstream was asked %d times", asked)
	}
}

// Who only asks whether there is a blob makes nobody fetch it.
func TestHead(t *testing.T) {
	u := newUpstream(t)
	cache, _ := newCache(t, u)
	blob := u.add(t, 1<<20)
	response, err := cache.Client().Head(cache.URL + blobPath("library/app", blob))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ContentLength != 1<<20 || response.Header.Get("Docker-Content-Digest") != blob.String() {
		t.Errorf("status %d, header %v", response.StatusCode, response.Header)
	}
	if asked := u.asked(blob); asked != 0 {
		t.Errorf("the upstream was asked %d times", asked)
	}
}

// What is on its way need not be looked up.
func TestManyClientsCostFewLookups(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 1<<20)
	release, _ := u.hold()
	clients := []<-chan answer{pull(t.Context(), cache, blobPath("library/app", blob))}
	joined(t, group, blob, 1)
	eventually(t, "the upstream is asked", func() bool { return u.asked(blob) == 1 })
	looked := u.looked(blob)
	for range 5 {
		clients = append(clients, pull(t.Context(), cache, blobPath("library/app", blob)))
	}
	joined(t, group, blob, 6)
	release()
	for _, client := range clients {
		(<-client).require(t, blob)
	}
	if again := u.looked(blob); again != looked {
		t.Errorf("the upstream was asked %d times more whether it has the blob", again-looked)
	}
}

// An upload that cannot be verified must not fill the volume.
func TestWrongBytesLeaveNothing(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 1<<20)
	u.mu.Lock()
	u.wrong = func(content []byte) []byte { return append([]byte{^content[0]}, content[1:]...) }
	u.mu.Unlock()
	if got := get(t.Context(), cache, blobPath("library/app", blob)); digest.FromBytes(got.body) == blob {
		t.Error("the bytes are not wrong")
	}
	eventually(t, "no flight is left", func() bool {
		group.mu.Lock()
		defer group.mu.Unlock()
		return len(group.flights) == 0
	})
	uploads, err := filepath.Glob(filepath.Join(group.root, "docker/registry/v2/repositories/library/app/_uploads/*"))
	if err != nil || len(uploads) != 0 {
		t.Errorf("left: %v, %v", uploads, err)
	}
	u.mu.Lock()
	u.wrong = nil
	u.mu.Unlock()
	get(t.Context(), cache, blobPath("library/app", blob)).require(t, blob)
}

// A disk that is slow to store a blob for good does not look like an upstream that hangs.
func TestStoringIsNotStalling(t *testing.T) {
	f := patientGroup(t).newFlight(func() {}, "library/app", 10)
	f.progress = f.progress.Add(-2 * patient)
	if !f.stalled() {
		t.Error("it does not get on")
	}
	f.header, f.size, f.written = http.Header{}, 10, 10
	if f.stalled() {
		t.Error("it has everything")
	}
}
