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

// SettlePath is a path that the Log answers itself. It waits until all earlier requests, except
// held ones (see Hold), have ended and are recorded. Then it also records this request. A reader of
// the log requests the path with a unique query. When the reader finds the record of that request,
// it has read all records of earlier requests.
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

// Handler wraps next. It records each request when next returns or panics (http.ErrAbortHandler).
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

// serve calls the handler, records the request, and panics again if the handler has panicked.
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
	// A record can always be encoded. The error of a closed output cannot be reported anywhere.
	_ = l.out.Encode(record) //nolint:errchkjson // a request's time has a year below 10000
}

// settle answers when the requests that are running now have ended, or with 503 if its client
// disconnects.
func (l *Log) settle(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	running := slices.Collect(maps.Keys(l.running))
	l.mu.Unlock()
	for _, done := range running {
		select {
		case <-done:
		case <-r.Context().Done():
			http.Error(w, "requests are still running", http.StatusServiceUnavailable)
			return
		}
	}
}

// exchange is a running request.
type exchange struct {
	log *Log
	// done is closed when readers of the log no longer have to wait for the request. It is nil while
	// the request is held. The lock of log guards done.
	done   chan struct{}
	faults []string
}

type exchangeKey struct{}

// NoteFault records that a fault has changed the response to the request in ctx. A handler must
// call NoteFault before it returns. Without a Log, NoteFault does nothing.
func NoteFault(ctx context.Context, id string) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.faults = append(e.faults, id)
	}
}

// Hold declares that a fault delays the request in ctx until release is called. Readers of the log
// do not wait for a held request. Without a Log, Hold does nothing.
func Hold(ctx context.Context) (release func()) {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return func() {}
	}
	e.end()
	return e.begin
}

func (e *exchange) begin() {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.done = make(chan struct{})
	e.log.running[e.done] = struct{}{}
}

func (e *exchange) end() {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if e.done == nil {
		return
	}
	delete(e.log.running, e.done)
	close(e.done)
	e.done = nil
}
