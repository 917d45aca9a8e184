package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// replica is an upstream whose answers count as those of a replica.
type replica struct{ *testUpstream }

type replicaBody struct{ io.ReadCloser }

// Wrong implements Replica.
func (replicaBody) Wrong() {}

// Do implements Upstream.
func (r replica) Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	response, err := r.testUpstream.Do(ctx, method, repository, path, header)
	if err == nil {
		response.Body = replicaBody{response.Body}
	}
	return response, err
}

// TestReplicaWithoutVolume checks that a blob of a replica passes through memory, although clients
// see a small blob of a replica only after its check if the volume takes it.
func TestReplicaWithoutVolume(t *testing.T) {
	u := newUpstream(t, 8<<20)
	f, v := newFetcher(t, replica{u})
	v.full.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	flight, err := f.Join(ctx, "library/app", digest.FromBytes(u.content))
	if err != nil {
		t.Fatal(err)
	}
	defer flight.Leave()
	var got bytes.Buffer
	if err := flight.Copy(t.Context(), &got, 0, flight.Size()); err != nil || !bytes.Equal(got.Bytes(), u.content) {
		t.Errorf("%d bytes, error %v", got.Len(), err)
	}
}

// TestPassed checks that a client that comes when the first bytes have passed gets an error at
// once, and that Close ends the flight.
func TestPassed(t *testing.T) {
	u := newUpstream(t, 20<<20)
	handler, sent, over := u.Config.Handler, make(chan struct{}), make(chan struct{})
	u.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(&pausing{ResponseWriter: w, left: 10 << 20, sent: sync.OnceFunc(func() { close(sent) }), over: over}, r)
	})
	t.Cleanup(func() { close(over) }) // before the upstream waits for its clients
	f, v := newFetcher(t, u)
	v.full.Store(true)
	blob := digest.FromBytes(u.content)
	flight, err := f.Join(t.Context(), "library/app", blob)
	if err != nil {
		t.Fatal(err)
	}
	reader := make(chan error, 1)
	go func() { reader <- flight.Copy(t.Context(), io.Discard, 0, flight.Size()) }()
	<-sent
	for !flight.hasPassed() {
		<-time.After(time.Millisecond)
	}
	if _, err := f.Join(t.Context(), "library/app", blob); !errors.Is(err, ErrOutOfReach) {
		t.Errorf("a late client: %v", err)
	}
	f.Close()
	if err := <-reader; !errors.Is(err, errClosed) {
		t.Errorf("the reader: %v", err)
	}
}

// pausing sends some bytes, and waits.
type pausing struct {
	http.ResponseWriter
	left int
	sent func()
	over <-chan struct{}
}

// Write implements http.ResponseWriter.
func (w *pausing) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		w.sent()
		<-w.over
	}
	return w.ResponseWriter.Write(p)
}
