package cache

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const size = 300_000

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// TestDownload: each client opens its own connection, and requests all targets on it.
func TestDownload(t *testing.T) {
	var mu sync.Mutex
	paths := map[string]string{} // by client
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths[r.RemoteAddr] += r.URL.Path
		mu.Unlock()
		_, _ = w.Write(make([]byte, size))
	})
	answers, took := download(t.Context(), 5, url, []blob{{Path: "/a", Size: size}, {Path: "/b", Size: size}})
	if len(answers) != 10 || len(paths) != 5 {
		t.Errorf("%d answers on %d connections, want 10 on 5", len(answers), len(paths))
	}
	for _, path := range paths {
		if path != "/a/b" {
			t.Errorf("a client asked for %s", path)
		}
	}
	for _, a := range answers {
		if a.Err != nil || a.Bytes != size || a.First <= 0 || a.First > a.Last || a.Last > took {
			t.Errorf("answer %+v, all took %s", a, took)
		}
	}
}

// TestFirstByte: the first byte is that of the body, not of the header.
func TestFirstByte(t *testing.T) {
	const pause = 50 * time.Millisecond
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-time.After(pause)
		_, _ = w.Write(make([]byte, size))
		w.(http.Flusher).Flush()
		<-time.After(pause)
	})
	answers, _ := download(t.Context(), 1, url, []blob{{Size: size}})
	if a := answers[0]; a.Err != nil || a.First < pause || a.Last < 2*pause || a.Last-a.First < pause/2 {
		t.Errorf("answer %+v", a)
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name, want string
		handler    http.HandlerFunc
	}{
		{"status", "status 502", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) }},
		{"too short", "got 5 bytes, want 300000", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 5)) }},
		{"cut", "cut after", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "300000")
			_, _ = w.Write(make([]byte, 100_000))
			panic(http.ErrAbortHandler)
		}},
		{"hang", "no answer", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("no answer"))
			defer cancel()
			answers, _ := download(ctx, 1, serve(t, test.handler), []blob{{Size: size}})
			if err := answers[0].Err; err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
