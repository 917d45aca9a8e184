package cache

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// requireNoRoom fails the test if room is reserved or an answer is open after all downloads have
// ended.
func (c *testCache) requireNoRoom(t *testing.T, registry *answers) {
	t.Helper()
	c.settle()
	if reserved, awaited := c.reserved.Load(), c.awaited.Load(); reserved != 0 || awaited != 0 {
		t.Errorf("%d bytes are reserved, %d awaited", reserved, awaited)
	}
	if open := registry.open.Load(); open != 0 {
		t.Errorf("%d answers of the upstream are open", open)
	}
}

// TestRoomComesBack checks that the room of a blob is released, whether it was stored or not, and
// that the index lists exactly the bytes that are left of it.
func TestRoomComesBack(t *testing.T) {
	content := bytes.Repeat([]byte("content "), 1000)
	size := int64(len(content))
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write(content)
	_ = zip.Close()
	encoded := http.Header{"Content-Encoding": {"gzip"}}
	for name, test := range map[string]struct {
		header http.Header
		size   int64
		body   []byte
		limit  int64
		stored bool
	}{
		"success":          {http.Header{}, size, content, 0, true},
		"size not told":    {http.Header{}, -1, content, 0, true},
		"encoded":          {encoded, int64(zipped.Len()), zipped.Bytes(), 0, true},
		"encoded, no size": {encoded, -1, zipped.Bytes(), 0, true},
		"damaged":          {http.Header{}, size, bytes.ToUpper(content), 0, false},
		"damaged encoding": {encoded, 30, zipped.Bytes()[:30], 0, false},
		"not encoded":      {encoded, size, bytes.ToUpper(content), 0, false},
		"unknown encoding": {http.Header{"Content-Encoding": {"br"}}, 10, zipped.Bytes()[:10], 0, false},
		"break":            {http.Header{}, size, content[:100], 0, false},
		"no room":          {http.Header{}, size, content, 100, false},
		"no room, no size": {http.Header{}, -1, content, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := newTestCache(t, Options{Limit: func() int64 { return test.limit }})
			registry := &answers{answer: func(header http.Header) (*http.Response, error) {
				if header.Get("Range") != "" { // after a break
					return nil, &upstream.RefusedError{Status: http.StatusForbidden}
				}
				return respond(http.StatusOK, test.header, test.size, bytes.NewReader(test.body)), nil
			}}
			c.options.Upstream = registry
			blob := digest.FromBytes(content)
			if found, err := c.Blob(t.Context(), query, blob); err == nil {
				if found.File == nil && found.Answer == nil {
					_ = found.Copy(t.Context(), io.Discard)
				}
				_ = found.Close()
			}
			c.requireNoRoom(t, registry)
			_, err := c.options.Store.Open(blob)
			blobs, bytes := c.index.Size()
			if (err == nil) != test.stored || test.stored && bytes != size {
				t.Errorf("stored: %v, the index counts %d bytes", err, bytes)
			}
			if left := c.options.Store.Arrived(blob); !test.stored && (bytes != left || blobs > 0 && left == 0) {
				t.Errorf("%d bytes are left, the index contains %d blobs with %d bytes", left, blobs, bytes)
			}
		})
	}
}

// TestRoomOfArrival checks that the reserved room is the size of the blob, and that only the
// missing bytes are awaited.
func TestRoomOfArrival(t *testing.T) {
	c, _, _ := newTestCache(t, Options{})
	content := []byte("0123456789")
	from, to := io.Pipe()
	registry := &answers{answer: func(http.Header) (*http.Response, error) {
		return respond(http.StatusOK, http.Header{}, 10, from), nil
	}}
	c.options.Upstream = registry
	blob := digest.FromBytes(content)
	go func() { _, _ = to.Write(content[:4]) }()
	found, err := c.Blob(t.Context(), query, blob)
	if err != nil {
		t.Fatal(err)
	}
	if reserved, awaited := c.reserved.Load(), c.awaited.Load(); reserved != 10 || awaited != 6 {
		t.Errorf("%d bytes are reserved, %d awaited", reserved, awaited)
	}
	go func() { _, _ = to.Write(content[4:]); _ = to.Close() }()
	var got bytes.Buffer
	if err := errors.Join(found.Copy(t.Context(), &got), found.Close()); err != nil || got.String() != string(content) {
		t.Errorf("%q, %v", got.String(), err)
	}
	c.requireNoRoom(t, registry)
}

// TestRoomOfReplica checks that the room of a blob from another replica is released.
func TestRoomOfReplica(t *testing.T) {
	content := []byte("content")
	for name, test := range map[string]struct {
		sent   string
		length string
		stored bool
	}{
		"success": {"content", "7", true},
		"damaged": {"CONTENT", "7", false},
		"short":   {"con", "7", false},
		"no size": {"content", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if w.Header().Set("Content-Length", test.length); test.length == "" {
					w.Header().Del("Content-Length")
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = w.Write([]byte(test.sent))
			}))
			defer peer.Close()
			c, _, _ := newTestCache(t, Options{Replicas: upstream.NewReplicas(upstream.ReplicaOptions{
				Address: peer.Listener.Addr().String(),
				Lookup:  func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil },
				Own:     func() ([]net.Addr, error) { return nil, nil },
			})})
			registry := &answers{answer: func(http.Header) (*http.Response, error) {
				return nil, &upstream.RefusedError{Status: http.StatusNotFound}
			}}
			c.options.Upstream = registry
			found, err := c.Blob(t.Context(), query, digest.FromBytes(content))
			if (err == nil) != test.stored {
				t.Errorf("from the replica: %v", err)
			}
			_ = found.Close()
			c.requireNoRoom(t, registry)
		})
	}
}

// TestRoomOfManifest checks that the room of a manifest is released, even if it does not fit.
func TestRoomOfManifest(t *testing.T) {
	content := []byte(`{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageManifest + `"}`)
	m := Manifest{Digest: digest.FromBytes(content), MediaType: v1.MediaTypeImageManifest, Content: content}
	for limit, want := range map[int64]bool{0: true, 10: false} {
		c, _, _ := newTestCache(t, Options{Limit: func() int64 { return limit }})
		if kept := c.keep("library/app", m); kept != want {
			t.Errorf("with a limit of %d it is stored: %t", limit, kept)
		}
		c.requireNoRoom(t, &answers{})
	}
}

// TestRoomForWhichNobodyEvicts checks that waiting in vain for an eviction leaves no room reserved,
// and that a file that outgrows its size takes no room from others.
func TestRoomForWhichNobodyEvicts(t *testing.T) {
	c, _, _ := newTestCache(t, Options{Limit: func() int64 { return 10_000 }})
	c.index.Use(digest.FromString("stored"), 9000, c.now())
	if _, ok := c.reserve(5000); ok {
		t.Error("there is room for 5000 bytes beside 9000 of 10000")
	}
	if _, ok := c.reserve(-1); ok {
		t.Error("there is room for a file of unknown size")
	}
	c.requireNoRoom(t, &answers{})
	room, ok := c.reserve(100)
	if !ok {
		t.Fatal("100 bytes have no room beside 9000 of 10000")
	}
	room.wrote(150)
	if reserved, awaited := c.reserved.Load(), c.awaited.Load(); reserved != 100 || awaited != 0 {
		t.Errorf("%d bytes are reserved, %d awaited", reserved, awaited)
	}
	room.release()
	room.release()
	c.requireNoRoom(t, &answers{})
}
