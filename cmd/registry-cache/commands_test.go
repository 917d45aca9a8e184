package main

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// syncBuffer is a log that can be read while it is being written.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// TestServe is the only test that serves in this process: distribution keeps health checks and
// metrics in globals, so a process can run only one registry.
func TestServe(t *testing.T) {
	remote := newUpstream(t)
	image := remote.push(t, "v1")
	cache := serve(t, remote.url)

	cache.pull(t, image)
	first := remote.blobRequests()
	slices.Sort(first)
	if gets := slices.DeleteFunc(slices.Clone(first), func(r string) bool { return !strings.HasPrefix(r, "GET ") }); len(gets) != layers+1 ||
		len(slices.Compact(gets)) != layers+1 {
		t.Fatalf("the first pull must fetch each of %d blobs once, the upstream saw %q", layers+1, first)
	}
	cache.awaitStored(t, layers+1)

	cache.pull(t, image)
	if second := remote.blobRequests(); len(second) != 0 {
		t.Errorf("the second pull reached the upstream for blobs: %q", second)
	}

	if hits := cache.metric(t, `registry_proxy_hits_total{type="blob"}`); hits != "4" {
		t.Errorf("the metrics count %s hits, want 4", hits)
	}
	// One series for each metric that the extension's alerts and dashboard use.
	for _, series := range []string{
		`registry_proxy_requests_total{type="blob"}`, `registry_proxy_misses_total{type="manifest"}`,
		`registry_proxy_pulled_bytes_total{type="blob"}`, `registry_proxy_pushed_bytes_total{type="blob"}`,
		`registry_http_requests_total{code="200",handler="blob",method="get"}`,
		`registry_http_request_duration_seconds_count{handler="blob",method="get"}`,
		`registry_proxy_upstream_requests_total{code="200"}`,
	} {
		if value := cache.metric(t, series); value == "0" {
			t.Errorf("%s is 0 after pulls", series)
		}
	}
	if body, status := get(t.Context(), t, cache.debugURL+"/debug/health"); status != http.StatusOK {
		t.Errorf("/debug/health returns %d: %s", status, body)
	}
	if _, status := get(t.Context(), t, cache.debugURL+"/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("/debug/pprof/ returns %d, but profiles must not be served", status)
	}

	cache.pullsThatRunAreDrained(t, remote)
	if code := <-cache.exit; code != program.ExitFine {
		t.Errorf("exit code %d after the stop signal; the log:\n%s", code, cache.log)
	}
}

// pullsThatRunAreDrained stops the cache during a pull. The running pull must get its whole blob,
// and a new pull must get nothing.
func (s *servedCache) pullsThatRunAreDrained(t *testing.T, remote *upstream) {
	t.Helper()
	gate := remote.holdNextBlob()
	running := make(chan error, 1)
	reference := parse(t, s.url, remote.push(t, "v2"))
	go func() { running <- fetchConfig(reference) }()
	<-gate.reached
	s.stop()
	s.waitUntil(t, "the cache takes no more connections", func(ctx context.Context) (bool, error) {
		_, status := get(ctx, t, s.url+"/v2/")
		return status == 0, nil
	})
	close(gate.open)
	if err := <-running; err != nil {
		t.Errorf("a pull running at SIGTERM failed: %v; the log:\n%s", err, s.log)
	}
}
