package server

import (
	"context"
	"net/http"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// clearedInterval is how often an answer that is held up looks whether its fault was cleared.
const clearedInterval = 100 * time.Millisecond

// delayed lets a request wait for its answer. One whose client gives up is recorded as aborted: it got none.
func (d disturbance) delayed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.wait(r.Context()) {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// wait returns true when the delay is over or the fault has ended, false when ctx ends before that. A reader of the log waits
// for an answer that comes late, but not for one that may never come.
func (d disturbance) wait(ctx context.Context) bool {
	var late <-chan time.Time
	if d.Kind == spec.Latency {
		late = time.After(time.Duration(d.Delay))
	} else {
		defer accesslog.Hold(ctx)()
	}
	return d.waitUntil(ctx, late)
}

// waitUntil is wait for any time; a nil channel never comes.
func (d disturbance) waitUntil(ctx context.Context, over <-chan time.Time) bool {
	look := time.NewTicker(clearedInterval)
	defer look.Stop()
	for d.holds() {
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return true
		case <-look.C:
		}
	}
	return true
}
