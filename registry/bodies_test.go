package registry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/registry"
)

// sends returns a rule that answers GET requests with the content.
func sends(length int, content []byte) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if length >= 0 {
			w.Header().Set("Content-Length", fmt.Sprint(length))
		}
		w.WriteHeader(http.StatusOK)
		if flush(w); r.Method == http.MethodGet {
			_, _ = w.Write(content)
		}
		return true
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// TestChunkedBlob: a blob of unknown length is served and stored if its digest matches.
func TestChunkedBlob(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		content := noise(1 << 20)
		blob := o.pushBlob(app, content)
		damaged := o.pushBlob(app, noise(1<<20))
		o.when(blob.String(), sends(-1, content))
		o.when(damaged.String(), sends(-1, noise(1<<20)))
		p := start(t, o.URL, t.TempDir())
		if a := head(t, p.blob(blob.String())); a.status != http.StatusOK && a.status != http.StatusBadGateway {
			t.Errorf("HEAD: %s", a)
		}
		if a := get(t, p.blob(blob.String())); !a.is(content) {
			t.Errorf("GET: %s", a)
		}
		if !within(t, 2*time.Second, func() bool { return p.has(blob) }) {
			t.Error("the blob is not stored")
		}
		before := o.requests("GET ")
		if a := get(t, p.blob(blob.String())); !a.is(content) || a.length != int64(len(content)) {
			t.Errorf("the second GET: %s, length %d", a, a.length)
		}
		if n := o.requests("GET ") - before; n > 0 || before != 1 {
			t.Errorf("the upstream was asked %d times for the first GET, and %d times for the second one", before, n)
		}
		if a := get(t, p.blob(damaged.String())); a.status == http.StatusOK && a.err == nil {
			t.Errorf("damaged content is complete: %s", a)
		}
	})
}

// TestOtherStatus: containerd accepts every status 2xx, such as 203 from a proxy, or 206 for a
// request without a range (r2-webdav#24). So does the cache, if the digest matches.
func TestOtherStatus(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		header []string
	}{
		"201": {201, nil}, "203": {203, nil}, "206": {206, nil},
		"206 with its range":    {206, []string{"Content-Range", "bytes 0-999/1000"}},
		"206 without its range": {206, []string{"Content-Range", "bytes */1000"}},
	} {
		for state, limit := range map[string]int64{"stored": 0, "passing": 1} {
			t.Run(name+" "+state, func(t *testing.T) {
				registry.Virtually(t, func(t *testing.T) {
					o := newOrigin(t)
					i := o.push("v1", 1000)
					o.when(" /v2/"+app, func(w http.ResponseWriter, r *http.Request) bool {
						o.mu.Lock()
						found := o.objects[r.URL.Path]
						o.mu.Unlock()
						w.Header().Set("Content-Type", found.kind)
						w.Header().Set("Content-Length", fmt.Sprint(len(found.content)))
						status(test.code, test.header...)(w, r)
						_, _ = w.Write(found.content)
						return true
					})
					p := start(t, o.URL, t.TempDir(), withLimit(limit))
					if a := get(t, p.tag("v1")); a.status != 200 || a.digest() != i.manifest.String() {
						t.Errorf("the tag: %s", a)
					}
					if a := head(t, p.blob(i.layer.String())); a.status != 200 || a.length != 1000 {
						t.Errorf("HEAD of the layer: %s, length %d", a, a.length)
					}
					if a := get(t, p.blob(i.layer.String())); a.status/100 != 2 || a.err != nil || !bytes.Equal(a.body, i.content) {
						t.Errorf("the layer: %s", a)
					}
				})
			})
		}
	}
}

// TestEncodedBlob: the digest decides whether content with an unrequested encoding is decoded.
func TestEncodedBlob(t *testing.T) {
	content := noise(100 << 10)
	packed := packedGzip(content)
	twice := packedGzip(packed)
	for name, test := range map[string]struct {
		encoding   string
		sent, want []byte
	}{
		"of what is sent": {"gzip", packed, packed}, "of what is meant": {"gzip", packed, content},
		"unknown": {"aws-chunked", packed, packed}, "two": {"identity, GZIP", packed, content}, "twice": {"gzip,gzip", twice, content},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				blob := o.pushBlob(app, test.want)
				o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
					w.Header().Set("Content-Encoding", test.encoding)
					return sends(len(test.sent), test.sent)(w, r)
				})
				p := start(t, o.URL, t.TempDir())
				for _, state := range []string{"cold", "warm"} {
					if a := get(t, p.blob(blob.String())); !a.is(test.want) || a.header.Get("Content-Encoding") != "" {
						t.Errorf("%s: %.200s, Content-Encoding %q", state, a, a.header.Get("Content-Encoding"))
					}
				}
			})
		})
	}
}

func packedGzip(content []byte) []byte {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(content)
	_ = writer.Close()
	return packed.Bytes()
}

// TestEmptyBody: an answer without a body is not the content of a blob.
func TestEmptyBody(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		blob := o.pushBlob(app, noise(1000))
		o.when("GET /v2/"+app+"/blobs/"+blob.String(), sends(0, nil))
		p := start(t, o.URL, t.TempDir())
		for range 2 {
			if a := get(t, p.blob(blob.String())); a.status != http.StatusBadGateway {
				t.Errorf("%s, want 502", a)
			}
		}
		empty := o.pushBlob(app, nil)
		if a := get(t, p.blob(empty.String())); !a.is(nil) {
			t.Errorf("an empty blob: %s", a)
		}
	})
}

// TestDamagedRange: an answer with unchecked bytes from the cache never looks complete.
func TestDamagedRange(t *testing.T) {
	for name, whole := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"complete": sends(1<<20, make([]byte, 1<<20)),
		"hangs": func(w http.ResponseWriter, r *http.Request) bool {
			sends(1<<20, make([]byte, 600<<10))(w, r)
			flush(w)
			<-r.Context().Done()
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				content := noise(1 << 20)
				blob := o.pushBlob(app, content)
				o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
					return r.Header.Get("Range") == "" && whole(w, r)
				})
				p := start(t, o.URL, t.TempDir())
				for range 2 {
					a := get(t, p.blob(blob.String()), "Range", "bytes=0-524287")
					if a.status == http.StatusPartialContent && a.err == nil && !bytes.Equal(a.body, content[:512<<10]) {
						t.Errorf("complete with wrong bytes: %.80s", a)
					} else if name == "hangs" && (a.status != http.StatusPartialContent || a.err != nil) {
						t.Errorf("the upstream can send this range: %.200s", a)
					}
				}
			})
		})
	}
}

// TestTinyProgress: if the upstream breaks off after each byte, the cache pauses before it asks
// again.
func TestTinyProgress(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		content := noise(1 << 20)
		blob := o.pushBlob(app, content)
		o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
			var first int
			status, length := http.StatusOK, len(content)
			if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &first); n == 1 {
				status, length = http.StatusPartialContent, len(content)-first
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, len(content)-1, len(content)))
			}
			w.Header().Set("Content-Length", fmt.Sprint(length))
			w.WriteHeader(status)
			_, _ = w.Write(content[first : first+1])
			flush(w)
			panic(http.ErrAbortHandler)
		})
		p := start(t, o.URL, t.TempDir())
		begin := time.Now()
		go ask(t.Context(), http.MethodGet, p.blob(blob.String()))
		within(t, 2*time.Second, func() bool { return o.requests("/blobs/") > 1000 })
		if n := o.requests("/blobs/"); n > 15 || n == 0 {
			t.Errorf("the upstream was asked %d times within %s for one blob", n, time.Since(begin))
		}
	})
}

// partialFile returns the path of a partial blob.
func partialFile(volume, hex string) string {
	return filepath.Join(volume, "registry-cache/partial/sha256", hex)
}

// TestLongPartial: a partial file that is longer than the blob is replaced, even if the upstream
// does not support ranges.
func TestLongPartial(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		content := noise(1 << 20)
		blob := o.pushBlob(app, content)
		o.when("GET /v2/"+app+"/blobs/", sends(len(content), content))
		volume := t.TempDir()
		partial := partialFile(volume, blob.Encoded())
		if err := os.MkdirAll(filepath.Dir(partial), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(partial, make([]byte, len(content)+1), 0o644); err != nil {
			t.Fatal(err)
		}
		p := start(t, o.URL, volume)
		if a := get(t, p.blob(blob.String())); !a.is(content) {
			t.Errorf("%.200s", a)
		}
		if !within(t, 2*time.Second, func() bool { return p.has(blob) }) {
			t.Error("the blob is not stored")
		}
	})
}

// TestTricklingConnection: a connection that delivers too few bytes is replaced.
func TestTricklingConnection(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		content := noise(1 << 20)
		blob := o.pushBlob(app, content)
		first := make(chan struct{}, 1)
		first <- struct{}{}
		o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
			select {
			case <-first:
			default:
				return false
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			for i := range content {
				_, _ = w.Write(content[i : i+1])
				flush(w)
				select {
				case <-r.Context().Done():
					return true
				case <-time.After(time.Second):
				}
			}
			return true
		})
		p := start(t, o.URL, t.TempDir())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.blob(blob.String()), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		response, err := registry.NewTransport().RoundTrip(request)
		if err != nil {
			t.Fatalf("after %s: %v; the upstream was asked %d times", time.Since(begin), err, o.requests("/blobs/"))
		}
		defer func() { _ = response.Body.Close() }()
		var got bytes.Buffer
		if _, err = got.ReadFrom(response.Body); err != nil || !bytes.Equal(got.Bytes(), content) {
			t.Errorf("%d bytes after %s: %v; the upstream was asked %d times", got.Len(), time.Since(begin), err, o.requests("/blobs/"))
		}
	})
}

// TestUncheckedPartial: unchecked bytes from a replica are not served after a restart.
func TestUncheckedPartial(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	content := noise(1 << 20)
	blob := o.pushBlob(app, content)
	dripped := make(chan struct{}, 1)
	replica := serveOn(t, "127.0.0.2", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(make([]byte, 512<<10))
		for range 50 {
			flush(w)
			select {
			case dripped <- struct{}{}:
			default:
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
			_, _ = w.Write([]byte("x"))
		}
	}))
	volume := t.TempDir()
	p := start(t, o.URL, volume, func(c *registry.Config) { c.Cache.Peers = strings.TrimPrefix(replica.URL, "http://") })
	go ask(t.Context(), http.MethodGet, p.blob(blob.String()))
	<-dripped
	within(t, 500*time.Millisecond, func() bool { return p.has(blob) }) // time to write the partial blob
	p.stop()
	o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
		o.mu.Lock()
		found := o.objects[r.URL.Path]
		o.mu.Unlock()
		http.ServeContent(&slowWriter{w}, r, "", time.Time{}, bytes.NewReader(found.content))
		return true
	})
	p = start(t, o.URL, volume)
	a := get(t, p.blob(blob.String()))
	if a.status != http.StatusOK || !bytes.HasPrefix(content, a.body) {
		t.Errorf("wrong bytes from a replica, received before the restart: %.80s", a)
	}
	if a.err != nil {
		t.Errorf("the answer is not complete: %.80s", a)
	}
}

// slowWriter simulates a slow connection.
type slowWriter struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *slowWriter) Write(p []byte) (int, error) {
	flush(w.ResponseWriter)
	<-time.After(20 * time.Millisecond)
	return w.ResponseWriter.Write(p)
}
