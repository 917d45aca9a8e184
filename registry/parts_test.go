package registry_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/registry"
)

// stalling returns an upstream that stalls when it sends a whole blob, but sends ranges at once.
func stalling(t *testing.T, size int) (o *origin, url string, content []byte) {
	t.Helper()
	o = newOrigin(t)
	content = noise(size)
	blob := o.pushBlob(app, content)
	o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = w.Write(content[:1<<20])
		flush(w)
		<-r.Context().Done()
		return true
	})
	return o, start(t, o.URL, t.TempDir()).blob(blob.String()), content
}

// TestManyParts: all parts of a layer that is not stored are answered, wherever they begin.
func TestManyParts(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		const parts, size = 20, 20 << 20
		_, url, content := stalling(t, size)
		var clients sync.WaitGroup
		for i := range parts {
			clients.Go(func() {
				first := i * size / parts
				end := first + size/parts
				a := get(t, url, "Range", fmt.Sprintf("bytes=%d-%d", first, end-1))
				if a.status != http.StatusPartialContent || a.err != nil || sha256.Sum256(a.body) != sha256.Sum256(content[first:end]) {
					t.Errorf("from %d: %.100s", first, a)
				}
			})
		}
		clients.Wait()
	})
}

// TestPartsFarAhead: parts at the end, and several parts in one answer, are also answered in time.
func TestPartsFarAhead(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		const size = 20 << 20
		_, url, content := stalling(t, size)
		if a := get(t, url, "Range", "bytes=-5"); a.status != http.StatusPartialContent || a.err != nil || !bytes.Equal(a.body, content[size-5:]) {
			t.Errorf("the last 5 bytes: %.200s", a)
		}
		a := get(t, url, "Range", "bytes=0-0,20000000-20000009")
		kind, parameters, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
		if a.status != http.StatusPartialContent || a.err != nil || !strings.HasPrefix(kind, "multipart/") {
			t.Fatalf("two parts: %.200s", a)
		}
		got := multipart.NewReader(bytes.NewReader(a.body), parameters["boundary"])
		for _, want := range [][]byte{content[:1], content[20000000:20000010]} {
			part, err := got.NextPart()
			if err != nil {
				t.Fatal(err)
			}
			if bytesOf, err := io.ReadAll(part); err != nil || !bytes.Equal(bytesOf, want) {
				t.Errorf("one of the two parts has %d bytes, want %d, error %v", len(bytesOf), len(want), err)
			}
		}
	})
}

// TestPartsOfLeavers: clients that reset their connection while parts arrive cause no data race. It
// can fail only with -race.
func TestPartsOfLeavers(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	content := noise(4 << 20)
	blob := o.pushBlob(app, content)
	o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		for i := 0; i < len(content); i += 512 {
			if _, err := w.Write(content[i : i+512]); err != nil {
				break
			}
			flush(w)
			<-time.After(3 * time.Millisecond)
		}
		return true
	})
	url := start(t, o.URL, t.TempDir()).blob(blob.String())
	go ask(t.Context(), http.MethodGet, url)
	await(t, "the blob is on its way", func() bool { return o.requests("/blobs/") > 0 })
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	var clients sync.WaitGroup
	for client := range 20 {
		clients.Go(func() {
			for i := range 25 {
				connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(connection, "GET /"+path+" HTTP/1.1\r\nHost: cache\r\nRange: bytes=0-9,20-3000000\r\n\r\n")
				<-time.After(time.Duration(20+client*i%37) * time.Millisecond)
				_ = connection.(*net.TCPConn).SetLinger(0) // a reset
				_ = connection.Close()
			}
		})
	}
	clients.Wait()
}

// TestRefusedRange: a partial blob is dropped if the upstream refuses to send the rest, but not
// until it sends the whole blob (Artifactory answers 400, containerd#11953).
func TestRefusedRange(t *testing.T) {
	for _, code := range []int{400, 403, 405, 416} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				content := noise(2 << 20)
				blob := o.pushBlob(app, content)
				o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
					return r.Header.Get("Range") != "" && status(code)(w, r)
				})
				broken := o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
					if r.Header.Get("Range") != "" {
						return false
					}
					w.Header().Set("Content-Length", fmt.Sprint(len(content)))
					_, _ = w.Write(content[:1<<20])
					flush(w)
					panic(http.ErrAbortHandler)
				})
				p := start(t, o.URL, t.TempDir())
				if a := get(t, p.blob(blob.String())); a.err == nil || len(a.body) == 0 {
					t.Fatalf("broken: %.100s", a)
				}
				arrived := partialFile(p.volume, blob.Encoded())
				if a := get(t, p.url+"/v2/library/other/blobs/"+blob.String()); a.status != http.StatusNotFound {
					t.Errorf("of another repository: %.100s", a)
				}
				if info, err := os.Stat(arrived); err != nil || info.Size() != 1<<20 {
					t.Errorf("the partial blob: %v", err)
				}
				broken()
				if a := get(t, p.blob(blob.String())); !a.is(content) {
					t.Errorf("afterwards: %.200s", a)
				}
			})
		})
	}
}

// TestUnlabeledPart: an answer with status 200 and Content-Range, as Dragonfly sends it
// (dragonflyoss/client#1874), is a part. Without Content-Range it is the whole blob.
func TestUnlabeledPart(t *testing.T) {
	for name, limit := range map[string]int64{"stored": 0, "passing": 1} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, whole %t", name, whole), func(t *testing.T) {
				registry.Virtually(t, func(t *testing.T) {
					o := newOrigin(t)
					content := noise(2 << 20)
					blob := o.pushBlob(app, content)
					broken := false
					o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
						first := 0
						if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &first); n == 0 && !broken {
							broken = true
							w.Header().Set("Content-Length", fmt.Sprint(len(content)))
							_, _ = w.Write(content[:3<<19])
							flush(w)
							panic(http.ErrAbortHandler)
						}
						if whole {
							first = 0
						}
						w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, len(content)-1, len(content)))
						w.Header().Set("Content-Length", fmt.Sprint(len(content)-first))
						_, _ = w.Write(content[first:])
						return true
					})
					p := start(t, o.URL, t.TempDir(), withLimit(limit))
					if a := get(t, p.blob(blob.String())); limit == 0 && !a.is(content) || !bytes.HasPrefix(content, a.body) {
						t.Errorf("the whole blob: %.100s", a)
					}
					a := get(t, p.blob(blob.String()), "Range", "bytes=5-")
					if want := map[int][]byte{200: content, 206: content[5:]}[a.status]; a.err != nil || !bytes.Equal(a.body, want) {
						t.Errorf("a part: %.100s", a)
					}
				})
			})
		}
	}
}

// TestRestartedDownload: a partial blob survives a restart, and only the rest is requested.
func TestRestartedDownload(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o, volume := newOrigin(t), t.TempDir()
		content := noise(4 << 20)
		blob := o.pushBlob(app, content)
		ranges := make(chan string, 10)
		o.when("GET /v2/"+app+"/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
			select {
			case ranges <- r.Header.Get("Range"):
			default: // more than needed
			}
			if r.Header.Get("Range") != "" {
				return false
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:1<<20])
			flush(w)
			<-r.Context().Done()
			return true
		})
		first := start(t, o.URL, volume)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, first.blob(blob.String()), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := registry.NewTransport().RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, response.Body, 1<<20-1); err != nil {
			t.Fatal(err)
		}
		first.stop()
		_ = response.Body.Close()
		if a := get(t, start(t, o.URL, volume).blob(blob.String())); !a.is(content) {
			t.Errorf("after the restart: %.100s", a)
		}
		var asked []string
		for len(ranges) > 0 {
			asked = append(asked, <-ranges)
		}
		if !slices.Equal(asked, []string{"", "bytes=1048576-"}) {
			t.Errorf("the upstream was asked for %q", asked)
		}
	})
}
