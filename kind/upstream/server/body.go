package server

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// errCut is the error of writes after the end of a truncated body.
var errCut = errors.New("the body is cut by a fault")

// changeBody returns a handler that injects the fault into the bodies of successful GET responses.
func (d injection) changeBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w = &body{ResponseWriter: w, request: r, injection: d}
		}
		next.ServeHTTP(w, r)
	})
}

// body is a response whose body the fault changes. The fault does not change the status and the
// header, including Content-Length.
type body struct {
	http.ResponseWriter
	injection
	request *http.Request
	started bool
	// to is the writer that receives the body and applies the fault.
	to io.Writer
}

// Unwrap supports http.ResponseController.
func (b *body) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (b *body) WriteHeader(status int) {
	if !b.started && status >= http.StatusOK {
		b.started, b.to = true, b.ResponseWriter
		if status == http.StatusOK || status == http.StatusPartialContent {
			accesslog.NoteFault(b.request.Context(), b.ID)
			b.to = b.faulty()
		}
	}
	b.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (b *body) Write(p []byte) (int, error) {
	if !b.started {
		b.WriteHeader(http.StatusOK)
	}
	return b.to.Write(p)
}

func (b *body) faulty() io.Writer {
	if b.Kind == spec.Slow {
		return &slow{body: b, start: time.Now()}
	}
	return &cut{w: b.ResponseWriter, left: b.cutAfter()}
}

func (b *body) cutAfter() int64 {
	if b.After != nil {
		return *b.After
	}
	length, err := strconv.ParseInt(b.Header().Get("Content-Length"), 10, 64)
	if err != nil {
		return 0
	}
	return length / 2
}

type cut struct {
	w    io.Writer
	left int64
}

func (c *cut) Write(p []byte) (int, error) {
	n, err := c.w.Write(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if err == nil && n < len(p) {
		err = errCut
	}
	return n, err
}

// slow writes the body at the rate of the fault, in bytes per second.
type slow struct {
	*body
	start time.Time
	sent  int64
}

const portions = 10

func (s *slow) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		portion := min(int64(len(p)-written), max(1, s.Rate/portions))
		due := s.start.Add(time.Duration(float64(s.sent+portion) / float64(s.Rate) * float64(time.Second)))
		if !s.waitUntil(s.request.Context(), time.After(time.Until(due))) {
			return written, s.request.Context().Err()
		}
		n, err := s.ResponseWriter.Write(p[written : written+int(portion)])
		written += n
		s.sent += int64(n)
		if err != nil {
			return written, err
		}
		// A writer that cannot flush sends the bytes later.
		_ = http.NewResponseController(s.ResponseWriter).Flush()
	}
	return written, nil
}
