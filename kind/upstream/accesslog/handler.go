package accesslog

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/felixge/httpsnoop"
)

// SettlePath is answered by the log itself, once all requests that arrived before have been answered and recorded, and
// is then recorded like any other. A reader that asks for it with a query of its own and then finds that record has the
// whole log before it.
const SettlePath = "/-/settle"

// Log records the requests to a registry.
type Log struct {
	mu      sync.Mutex
	out     *json.Encoder
	running map[chan struct{}]struct{}
	now     func() time.Time
}

// NewLog returns a Log that writes one line of JSON per request to out.
func NewLog(out io.Writer) *Log {
	return &Log{out: json.NewEncoder(out), running: map[chan struct{}]struct{}{}, now: time.Now}
}

// Handler records every request when next has answered it, also when next panics, which is how net/http handlers cut a
// connection (http.ErrAbortHandler).
func (l *Log) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &exchange{log: l}
		if r.URL.Path == SettlePath {
			l.serve(http.HandlerFunc(l.settle), w, r, e)
			return
		}
		e.begin()
		defer e.end()
		l.serve(next, w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)), e)
	})
}

// serve runs next, records the request, and passes a panic of next on.
func (l *Log) serve(next http.Handler, w http.ResponseWriter, r *http.Request, e *exchange) {
	record := newRecord(r, l.now())
	metrics := httpsnoop.Metrics{Code: http.StatusOK}
	defer func() {
		aborted := recover()
		record.Status, record.Bytes, record.Seconds = metrics.Code, metrics.Written, metrics.Duration.Seconds()
		record.Aborted, record.Faults = aborted != nil, e.faults
		l.write(record)
		if aborted != nil {
			panic(aborted)
		}
	}()
	metrics.CaptureMetrics(w, func(w http.ResponseWriter) { next.ServeHTTP(w, r) })
}

func (l *Log) write(record Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The record can be encoded; and when the output is gone there is nobody left to tell.
	_ = l.out.Encode(record) //nolint:errchkjson // a request's time has a year below 10000
}

// settle answers when the requests that are running now have ended, or with 503 when the client no longer waits for it.
func (l *Log) settle(w http.ResponseWriter, r *http.Request) {
	for _, done := range l.snapshot() {
		select {
		case <-done:
		case <-r.Context().Done():
			http.Error(w, "requests are still running", http.StatusServiceUnavailable)
			return
		}
	}
}

func (l *Log) snapshot() []chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.running))
}
