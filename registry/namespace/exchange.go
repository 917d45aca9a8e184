package namespace

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/peer"
)

// exchange is a request and its answer, as far as distribution does not pass them on.
type exchange struct {
	request  *http.Request
	writer   *writer
	kind     string // blob, manifest or empty
	from     cache.From
	manifest *cache.Manifest // what the tag of the request refers to
	err      error           // why the upstream's object is not served
}

type exchangeKey struct{}

// of returns the exchange of a request that came through Handler.
func of(ctx context.Context) *exchange {
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	return e
}

// Handler logs and counts the requests that next answers. A client that does not read one MiB
// within the patience is cut, so that it does not hold a file and a connection for ever.
func Handler(patience time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &exchange{request: r, writer: &writer{ResponseWriter: w, patience: patience, status: http.StatusOK}}
		e.writer.extend()
		start := time.Now()
		ctx := context.WithValue(peer.Answering(r.Context(), r.Header), exchangeKey{}, e)
		defer func() { e.completed(ctx, time.Since(start)) }()
		next.ServeHTTP(e.writer, r.WithContext(ctx))
	})
}

// served notes from where an object is served.
func (e *exchange) served(kind string, from cache.From) {
	e.from = from
	if e.request.Header.Get(peer.Header) != "" {
		return // metrics count what nodes ask for
	}
	e.kind = kind
	metrics.Requests.WithLabelValues(kind).Inc()
	if from == cache.FromVolume {
		metrics.Hits.WithLabelValues(kind).Inc()
	} else {
		metrics.Misses.WithLabelValues(kind).Inc()
	}
}

// completed writes the line of the access log. Its message and keys are those of distribution.
func (e *exchange) completed(ctx context.Context, took time.Duration) {
	if e.kind != "" {
		metrics.Pushed.WithLabelValues(e.kind).Add(float64(e.writer.written))
	}
	line := []any{
		"http.request.method", e.request.Method, "http.request.uri", e.request.URL.RequestURI(),
		"http.request.remoteaddr", e.request.RemoteAddr, "http.request.useragent", e.request.UserAgent(),
		"http.response.status", e.writer.status, "http.response.written", e.writer.written,
		"http.response.duration", took, "from", string(e.from),
	}
	if e.err == nil {
		slog.InfoContext(ctx, "response completed", line...)
		return
	}
	slog.ErrorContext(ctx, "response completed with error", append(line, "err.message", e.err.Error())...)
}
