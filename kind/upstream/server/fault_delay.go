package server

import (
	"context"
	"net/http"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// clearedInterval is how often a delayed response checks whether its fault was cleared.
const clearedInterval = 100 * time.Millisecond

// delay delays the response. If the client disconnects, the request is recorded as aborted.
func (d injection) delay(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.wait(r.Context()) {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// wait returns true when the delay is over or the fault has ended, and false if ctx ends first.
// Readers of the log wait for a response that is late, but not for one that may never come.
func (d injection) wait(ctx context.Context) bool {
	var over <-chan time.Time
	if d.Kind == spec.Latency {
		over = time.After(time.Duration(d.Delay))
	} else {
		defer accesslog.Hold(ctx)()
	}
	return d.waitUntil(ctx, over)
}

// waitUntil is wait for any channel. A nil channel waits until the fault or ctx ends.
func (d injection) waitUntil(ctx context.Context, over <-chan time.Time) bool {
	check := time.NewTicker(clearedInterval)
	defer check.Stop()
	for d.active() {
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return true
		case <-check.C:
		}
	}
	return true
}
