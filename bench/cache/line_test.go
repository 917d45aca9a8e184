package cache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// newLine returns a line to a server whose answers contain size bytes.
func newLine(t *testing.T, size int, row Row) *line {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	}))
	t.Cleanup(server.Close)
	l, err := openLine(server.URL, row)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// ask sends a request through the line, and returns the number of bytes that arrive, and how long
// that takes.
func ask(ctx context.Context, l *line) (n int64, took time.Duration, err error) {
	start := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL, http.NoBody)
	if err != nil {
		return 0, 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, time.Since(start), err
	}
	defer func() { _ = response.Body.Close() }()
	n, err = io.Copy(io.Discard, response.Body)
	return n, time.Since(start), err
}

func TestLineCounts(t *testing.T) {
	l := newLine(t, 1000, Row{})
	for range 3 {
		if n, _, err := ask(t.Context(), l); n != 1000 || err != nil {
			t.Fatalf("%d bytes, error %v", n, err)
		}
	}
	if requests, bytes := l.requests.Load(), l.bytes.Load(); requests != 3 || bytes != 3000 {
		t.Errorf("counted %d requests and %d bytes", requests, bytes)
	}
}

func TestLineDelays(t *testing.T) {
	const delay = 50 * time.Millisecond
	l := newLine(t, 1, Row{Delay: delay})
	if _, took, err := ask(t.Context(), l); took < delay || err != nil {
		t.Errorf("took %s, error %v", took, err)
	}
}

// TestLineLimits: the line passes on a burst at once, and the rest at its rate.
func TestLineLimits(t *testing.T) {
	const bytesPerSecond, rest = 2_000_000, 400_000
	l := newLine(t, burst+rest, Row{Rate: bytesPerSecond})
	n, took, err := ask(t.Context(), l)
	if n != burst+rest || took < time.Second*rest/bytesPerSecond || err != nil {
		t.Errorf("%d bytes in %s, error %v", n, took, err)
	}
}

func TestLineCuts(t *testing.T) {
	const size, cut = cutAfter + 1<<20, cutAfter
	l := newLine(t, size, Row{Fault: Cuts})
	n, _, err := ask(t.Context(), l)
	if n > cut || n < cut/2 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, error %v; want at most %d and a cut", n, err, cut)
	}
	if got := l.bytes.Load(); got != cut {
		t.Errorf("counted %d bytes, want %d", got, cut)
	}
}

func TestLineHangs(t *testing.T) {
	l := newLine(t, 1, Row{})
	l.hanging.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := ask(ctx, l); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want no answer", err)
	}
	if requests, bytes := l.requests.Load(), l.bytes.Load(); requests != 1 || bytes != 0 {
		t.Errorf("counted %d requests and %d bytes", requests, bytes)
	}
}
