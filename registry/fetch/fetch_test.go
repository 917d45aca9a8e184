package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/store"
)

// testUpstream serves one blob, and cuts its answers after cut bytes.
type testUpstream struct {
	*httptest.Server
	content      []byte
	cut          atomic.Int64
	gets, served atomic.Int64
}

func newUpstream(t *testing.T, size int) *testUpstream {
	t.Helper()
	u := &testUpstream{content: make([]byte, size)}
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(u.content)
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.gets.Add(1)
		counted := &countedWriter{ResponseWriter: w, left: &u.cut, served: &u.served}
		http.ServeContent(counted, r, "", time.Time{}, bytes.NewReader(u.content))
	}))
	t.Cleanup(u.Close)
	return u
}

type countedWriter struct {
	http.ResponseWriter
	left, served *atomic.Int64
	sent         int64
}

func (w *countedWriter) Write(p []byte) (int, error) {
	if cut := w.left.Load(); cut > 0 && w.sent+int64(len(p)) > cut {
		p = p[:max(cut-w.sent, 0)]
		n, _ := w.ResponseWriter.Write(p)
		w.served.Add(int64(n))
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	w.served.Add(int64(n))
	return n, err
}

// Away implements Upstream.
func (u *testUpstream) Away(context.Context, string, string) error { return nil }

// Do implements Upstream.
func (u *testUpstream) Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.URL+"/v2/"+repository+"/"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header = header
	return u.Client().Do(request)
}

type volume struct {
	full   atomic.Bool
	stored atomic.Int64
}

// noRoom counts nothing.
type noRoom struct{}

func (noRoom) Wrote(int64) {}
func (noRoom) Release()    {}

func (v *volume) Reserve(int64) (Room, bool)          { return noRoom{}, !v.full.Load() }
func (v *volume) Left(digest.Digest, int64)           {}
func (v *volume) Stored(string, digest.Digest, int64) { v.stored.Add(1) }

func newFetcher(t *testing.T, u Upstream) (*Fetcher, *volume) {
	t.Helper()
	s, err := store.New(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	v := &volume{}
	f := &Fetcher{Store: s, Upstream: u, Volume: v}
	t.Cleanup(func() { f.Close(); _ = s.Close() })
	return f, v
}

func TestClientsShareOneDownload(t *testing.T) {
	for name, test := range map[string]struct {
		size    int
		cut     int64
		full    bool
		clients int
	}{
		"small":            {1000, 0, false, 20},
		"one byte":         {1, 0, false, 3},
		"large":            {20 << 20, 0, false, 20},
		"cut":              {20 << 20, 3 << 20, false, 20},
		"a full volume":    {20 << 20, 0, true, 5},
		"cut, full volume": {20 << 20, 3 << 20, true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.size)
			u.cut.Store(test.cut)
			f, v := newFetcher(t, u)
			v.full.Store(test.full)
			blob := digest.FromBytes(u.content)
			var clients, joined sync.WaitGroup
			joined.Add(test.clients)
			for range test.clients {
				clients.Go(func() {
					flight, err := f.Join(t.Context(), "library/app", blob)
					joined.Done()
					if err != nil {
						t.Error(err)
						return
					}
					defer flight.Leave()
					joined.Wait() // a late client of a blob that is not stored needs another download
					var got bytes.Buffer
					if err := flight.Copy(t.Context(), &got, 0, flight.Size()); err != nil || !bytes.Equal(got.Bytes(), u.content) {
						t.Errorf("%d of %d bytes, error %v", got.Len(), test.size, err)
					}
				})
			}
			clients.Wait()
			f.Close() // waits until the blob is stored
			if served := u.served.Load(); served > int64(test.size)+int64(test.size)/20+test.cut {
				t.Errorf("the upstream sent %d bytes of a blob of %d", served, test.size)
			}
			if want := map[bool]int64{false: 1, true: 0}[test.full]; v.stored.Load() != want {
				t.Errorf("stored %d times, want %d", v.stored.Load(), want)
			}
		})
	}
}

func TestDamage(t *testing.T) {
	u := newUpstream(t, 1<<20)
	f, v := newFetcher(t, u)
	flight, err := f.Join(t.Context(), "library/app", digest.FromString("another"))
	if err != nil {
		t.Fatal(err)
	}
	defer flight.Leave()
	var got bytes.Buffer
	err = flight.Copy(t.Context(), &got, 0, flight.Size())
	var damaged *DamagedError
	if !errors.As(err, &damaged) || got.Len() >= len(u.content) || v.stored.Load() != 0 {
		t.Errorf("error %v after %d bytes, stored %d", err, got.Len(), v.stored.Load())
	}
}

func TestAPartialBlobSurvivesARestart(t *testing.T) {
	for _, had := range []int64{1, 6 << 20, 8 << 20} {
		t.Run(strconv.FormatInt(had, 10), func(t *testing.T) {
			u := newUpstream(t, 8<<20)
			f, _ := newFetcher(t, u)
			blob := digest.FromBytes(u.content)
			partial, err := f.Store.Partial(blob)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(partial, bytes.NewReader(u.content[:had])); err != nil {
				t.Fatal(err)
			}
			_ = partial.Close()
			flight, err := f.Join(t.Context(), "library/app", blob)
			if err != nil {
				t.Fatal(err)
			}
			defer flight.Leave()
			var got bytes.Buffer
			if err := flight.Copy(t.Context(), &got, 0, flight.Size()); err != nil || !bytes.Equal(got.Bytes(), u.content) {
				t.Errorf("%d bytes, error %v", got.Len(), err)
			}
			if served := u.served.Load(); served > 8<<20-had+100 { // and the text of status 416
				t.Errorf("the upstream sent %d bytes, want the missing %d", served, 8<<20-had)
			}
		})
	}
}

// frozen is a client that reads nothing.
type frozen struct{ over <-chan struct{} }

// Write implements io.Writer.
func (f frozen) Write([]byte) (int, error) {
	<-f.over
	return 0, io.ErrClosedPipe
}

// TestAFrozenClientStallsOnce checks that a client that reads nothing holds up the others once, for
// memoryPatience, if the volume does not take the blob.
func TestAFrozenClientStallsOnce(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, 20<<20)
	f, v := newFetcher(t, u)
	v.full.Store(true)
	blob := digest.FromBytes(u.content)
	over := make(chan struct{})
	var joined, clients sync.WaitGroup
	joined.Add(2)
	start := func(copyTo func(*Flight)) {
		clients.Go(func() {
			flight, err := f.Join(t.Context(), "library/app", blob)
			joined.Done()
			if err != nil {
				t.Error(err)
				return
			}
			defer flight.Leave()
			joined.Wait()
			copyTo(flight)
		})
	}
	start(func(flight *Flight) { _ = flight.Copy(t.Context(), frozen{over}, 0, flight.Size()) })
	start(func(flight *Flight) {
		defer close(over)
		began := time.Now()
		var got bytes.Buffer
		if err := flight.Copy(t.Context(), &got, 0, flight.Size()); err != nil || !bytes.Equal(got.Bytes(), u.content) {
			t.Errorf("%d bytes, error %v", got.Len(), err)
		}
		if took := time.Since(began); took > 2*memoryPatience {
			t.Errorf("the other client took %s", took)
		}
	})
	clients.Wait()
}
