package cache

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// answers is an upstream that answers each request with the result of a function, and counts open
// bodies.
type answers struct {
	answer func(header http.Header) (*http.Response, error)
	open   atomic.Int64
}

// Away implements Upstream.
func (a *answers) Away(string, string) error { return nil }

// Do implements Upstream.
func (a *answers) Do(_ context.Context, _, _, _ string, header http.Header) (*http.Response, error) {
	response, err := a.answer(header)
	if err != nil {
		return nil, err
	}
	a.open.Add(1)
	response.Body = &openBody{response.Body, a}
	return response, nil
}

type openBody struct {
	io.ReadCloser
	of *answers
}

// Close implements io.Closer.
func (b *openBody) Close() error { b.of.open.Add(-1); return b.ReadCloser.Close() }

// respond returns an answer with a size, which may be -1.
func respond(status int, header http.Header, size int64, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: header, ContentLength: size, Body: io.NopCloser(body)}
}

// serving returns an upstream with one blob.
func serving(content []byte) *answers {
	return &answers{answer: func(http.Header) (*http.Response, error) {
		return respond(http.StatusOK, http.Header{}, int64(len(content)), bytes.NewReader(content)), nil
	}}
}

// nonePasses reports whether no blob is passing through.
func (c *testCache) nonePasses() bool {
	ok := c.passing.TryAcquire(mostPassing)
	if ok {
		c.passing.Release(mostPassing)
	}
	return ok
}

var query = Query{Repository: "library/app"}

// TestArrivalBound checks that at most 256 blobs arrive concurrently, and that another one passes
// through.
func TestArrivalBound(t *testing.T) {
	c, _, _ := newTestCache(t, Options{})
	content := []byte("content")
	blob, registry := digest.FromBytes(content), serving(content)
	c.options.Upstream = registry
	forever := func(ctx context.Context, _ *arrival) error { <-ctx.Done(); return ctx.Err() }
	first, _ := c.start(digest.FromString("0"), mostArrivals, forever)
	for n := 1; n < 256; n++ {
		if a, isNew := c.start(digest.FromString(fmt.Sprint(n)), mostArrivals, forever); a == nil || !isNew {
			t.Fatalf("arrival %d does not start", n+1)
		}
	}
	if a, isNew := c.start(blob, mostArrivals, forever); a != nil || isNew {
		t.Error("arrival 257 starts")
	}
	if a, isNew := c.start(digest.FromString("0"), mostArrivals, forever); a != first || isNew {
		t.Error("one of 256 arriving blobs is not shared")
	}
	if _, err := c.fetch(t.Context(), store.Link{Repository: "library/app"}, blob); !errors.Is(err, errUnstored) {
		t.Errorf("arrival 257: %v", err)
	}
	if open := registry.open.Load(); open != 0 {
		t.Errorf("%d answers of the upstream stay open", open)
	}
	passed, err := c.Blob(t.Context(), query, blob)
	if err != nil || passed.Answer == nil {
		t.Fatalf("blob 257 does not pass through: %v", err)
	}
	if got, err := io.ReadAll(passed.Answer.Body); err != nil || !bytes.Equal(got, content) {
		t.Errorf("blob 257: %q, %v", got, err)
	}
	if err := passed.Close(); err != nil || !c.nonePasses() || registry.open.Load() != 0 {
		t.Errorf("closing: %v; none passes: %t, %d are open", err, c.nonePasses(), registry.open.Load())
	}
	first.cancel(errAbandoned)
	_, _, _ = first.enter(t.Context(), false)
	if a, err := c.fetch(t.Context(), store.Link{Repository: "library/app"}, blob); a == nil || err != nil {
		t.Errorf("when another arrival has ended: %v", err)
	}
}

// TestAbandonedArrival checks that a client receives a blob whose download has just been abandoned,
// but has not ended yet.
func TestAbandonedArrival(t *testing.T) {
	c, _, _ := newTestCache(t, Options{})
	blob, ends := digest.FromString("content"), make(chan struct{})
	c.options.Upstream = serving([]byte("content"))
	a, _ := c.start(blob, mostArrivals, func(ctx context.Context, _ *arrival) error {
		<-ctx.Done()
		<-ends // a slow write
		return context.Cause(ctx)
	})
	a.cancel(errAbandoned)
	time.AfterFunc(10*time.Millisecond, func() { close(ends) })
	found, err := c.Blob(t.Context(), query, blob)
	if err != nil {
		t.Error(err)
	}
	_ = found.Close()
}

// TestNoArrivalAfterClose checks that Close ends all arrivals, and that no new one starts.
func TestNoArrivalAfterClose(t *testing.T) {
	c, _, _ := newTestCache(t, Options{})
	a, _ := c.start(digest.FromString("0"), mostArrivals, func(ctx context.Context, _ *arrival) error { <-ctx.Done(); return context.Cause(ctx) })
	c.Close()
	if !errors.Is(a.err, errClosed) || len(c.arrivals) != 0 {
		t.Errorf("%d arrivals; the first one: %v", len(c.arrivals), a.err)
	}
	if a, _ := c.start(digest.FromString("1"), mostArrivals, nil); a != nil {
		t.Error("an arrival starts after Close")
	}
}

// TestPassingBound checks that at most 200 blobs pass through concurrently, and that each of them
// releases its slot.
func TestPassingBound(t *testing.T) {
	c, _, _ := newTestCache(t, Options{})
	content := []byte("content")
	blob, registry := digest.FromBytes(content), serving(content)
	c.options.Upstream = registry
	c.pass(blob)
	var open []*Blob
	for n := range 200 {
		passed, err := c.Blob(t.Context(), query, blob)
		if err != nil || passed.Answer == nil {
			t.Fatalf("blob %d does not pass through: %v", n+1, err)
		}
		open = append(open, passed)
	}
	if _, err := c.Blob(t.Context(), query, blob); !errors.Is(err, ErrBusy) {
		t.Errorf("blob 201: %v", err)
	}
	_ = open[0].Close()
	again, err := c.Blob(t.Context(), query, blob)
	if err != nil {
		t.Fatalf("when another one has ended: %v", err)
	}
	for _, passed := range append(open[1:], again) {
		_ = passed.Close()
	}
	if !c.nonePasses() || registry.open.Load() != 0 {
		t.Errorf("none passes: %t, %d answers are open", c.nonePasses(), registry.open.Load())
	}
}

// TestUnreadableArrival checks that no client joins an arrival that the disk cannot read:
// containerd gives up after four answers without a byte.
func TestUnreadableArrival(t *testing.T) {
	c, _, _ := newTestCache(t, Options{})
	content := []byte("content")
	blob := digest.FromBytes(content)
	c.options.Upstream = serving(content)
	file, err := c.options.Store.Temporary()
	if err != nil {
		t.Fatal(err)
	}
	a, _ := c.start(blob, mostArrivals, func(ctx context.Context, _ *arrival) error { <-ctx.Done(); return ctx.Err() })
	a.update(func() { a.file, a.size, a.have = file.File, 7, 3 })
	c.pass(blob)
	passed, err := c.Blob(t.Context(), query, blob)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = passed.Close() }()
	if passed.Answer == nil {
		t.Error("the blob does not pass through")
	}
}

// TestFailedPassing checks that a blob releases its slot even if the upstream does not send it.
func TestFailedPassing(t *testing.T) {
	for name, answer := range map[string]func(http.Header) (*http.Response, error){
		"refused": func(http.Header) (*http.Response, error) {
			return nil, &upstream.RefusedError{Status: http.StatusNotFound}
		},
		"away": func(http.Header) (*http.Response, error) { return nil, &upstream.AwayError{} },
		"other range": func(http.Header) (*http.Response, error) {
			header := http.Header{"Content-Range": {"bytes 0-2/7"}}
			return respond(http.StatusPartialContent, header, 3, strings.NewReader("con")), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := newTestCache(t, Options{})
			registry := &answers{answer: answer}
			c.options.Upstream = registry
			blob := digest.FromString("content")
			c.pass(blob)
			q := query
			q.Range = "bytes=3-5"
			if _, err := c.Blob(t.Context(), q, blob); err == nil {
				t.Error("the blob passes through")
			}
			if !c.nonePasses() || registry.open.Load() != 0 {
				t.Errorf("none passes: %t, %d answers are open", c.nonePasses(), registry.open.Load())
			}
		})
	}
}

// TestUnstoredBound checks that the last 1000 blobs that the volume could not store are remembered
// for a second.
func TestUnstoredBound(t *testing.T) {
	c, _, now := newTestCache(t, Options{})
	name := func(n int) digest.Digest { return digest.FromString(fmt.Sprint(n)) }
	for n := range 1001 {
		c.pass(name(n))
	}
	if c.unstored.Len() != 1000 || c.passes(name(0)) || !c.passes(name(1)) || !c.passes(name(1000)) {
		t.Errorf("%d blobs; 0: %t, 1: %t, 1000: %t", c.unstored.Len(), c.passes(name(0)), c.passes(name(1)), c.passes(name(1000)))
	}
	now.forward(unstoredFor - 1)
	if !c.passes(name(1000)) {
		t.Error("storing is retried too early")
	}
	now.forward(1)
	if c.passes(name(1000)) {
		t.Error("storing is not retried")
	}
}

// TestLargeManifestBound checks that at most 16 large manifests are read concurrently, from the
// volume or from the upstream: each needs memory of several times its size. The number of small
// manifests is not limited.
func TestLargeManifestBound(t *testing.T) {
	c, registry, _ := newTestCache(t, Options{})
	push := func(tag string, size int) digest.Digest {
		content := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"annotations":{"a":"%s"}}`, v1.MediaTypeImageManifest, strings.Repeat("a", size))
		registry.add("manifests/"+digest.FromBytes(content).String(), content)
		return registry.add("manifests/"+tag, content)
	}
	stored, small, fetched := push("stored", 64<<10), push("small", 63<<10), push("fetched", 65<<10)
	if _, err := c.Tag(t.Context(), query, "stored"); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if !c.large.TryAcquire(16 - 1) {
		t.Fatal("there are fewer slots")
	}
	if m, err := c.Manifest(t.Context(), query, stored); err != nil || m.From != FromVolume {
		t.Errorf("beside 15: from %q, %v", m.From, err)
	}
	if !c.large.TryAcquire(1) {
		t.Fatal("a manifest keeps its slot")
	}
	for name, get := range map[string]func() (Manifest, error){
		"stored":          func() (Manifest, error) { return c.Manifest(t.Context(), query, stored) },
		"stored, by tag":  func() (Manifest, error) { return c.Tag(t.Context(), query, "stored") },
		"fetched":         func() (Manifest, error) { return c.Manifest(t.Context(), query, fetched) },
		"fetched, by tag": func() (Manifest, error) { return c.Tag(t.Context(), query, "fetched") },
	} {
		if _, err := get(); !errors.Is(err, ErrBusy) {
			t.Errorf("%s, beside 16: %v", name, err)
		}
	}
	if _, err := c.Manifest(t.Context(), query, small); err != nil {
		t.Errorf("a small one beside 16: %v", err)
	}
	c.large.Release(16)
	for _, one := range []digest.Digest{stored, fetched} {
		if _, err := c.Manifest(t.Context(), query, one); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}

// TestTagBeyondBound checks that a tag that moves to a manifest with 64 tags is removed from the
// volume: otherwise an outage would bring back its old manifest.
func TestTagBeyondBound(t *testing.T) {
	c, _, _ := newTestCache(t, Options{})
	old, full := digest.FromString("old"), digest.FromString("full")
	for n := range 64 {
		c.confirm(store.TagName{Repository: "library/app", Tag: fmt.Sprint(n)}, full, c.now())
	}
	moving := store.TagName{Repository: "library/app", Tag: "latest"}
	c.confirm(moving, old, c.now())
	c.confirm(moving, full, c.now())
	if to, err := c.options.Store.Tag(moving); !errors.Is(err, store.ErrNotStored) {
		t.Errorf("the tag is stored, and refers to %s: %v", to, err)
	}
	if to, err := c.options.Store.Tag(store.TagName{Repository: "library/app", Tag: "63"}); err != nil || to != full {
		t.Errorf("tag 64 refers to %s: %v", to, err)
	}
}

// TestCodingsBound: an upstream cannot make the cache decode content more than mostCodings times.
func TestCodingsBound(t *testing.T) {
	content := []byte("content")
	for range mostCodings + 1 {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		_, _ = writer.Write(content)
		_ = writer.Close()
		content = packed.Bytes()
	}
	for count, want := range map[int]bool{mostCodings: true, mostCodings + 1: false} {
		encodings := strings.TrimSuffix(strings.Repeat("gzip,", count), ",")
		if _, err := decoder(encodings, bytes.NewReader(content)); (err == nil) != want {
			t.Errorf("%d codings: %v", count, err)
		}
	}
}
