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

// errCut ends the handler that writes a body of which the rest is not wanted.
var errCut = errors.New("the body is cut by a fault of the testbed")

// changed breaks the body of a successful answer to GET.
func (d disturbance) changed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w = &body{ResponseWriter: w, request: r, disturbance: d}
		}
		next.ServeHTTP(w, r)
	})
}

// body is an answer whose body the disturbance changes. Its status, header and length stay what they are.
type body struct {
	http.ResponseWriter
	disturbance
	request *http.Request
	begun   bool
	// to takes the body; the fault is behind it.
	to io.Writer
}

// Unwrap is for http.ResponseController.
func (b *body) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (b *body) WriteHeader(status int) {
	if !b.begun && status >= http.StatusOK {
		b.begun, b.to = true, b.ResponseWriter
		if status == http.StatusOK || status == http.StatusPartialContent {
			accesslog.NoteFault(b.request.Context(), b.ID)
			b.to = b.spoiled()
		}
	}
	b.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (b *body) Write(p []byte) (int, error) {
	if !b.begun {
		b.WriteHeader(http.StatusOK)
	}
	return b.to.Write(p)
}

func (b *body) spoiled() io.Writer {
	switch b.Kind {
	case spec.Slow:
		return &slow{body: b, began: time.Now()}
	case spec.WrongBytes:
		return inverted{b.ResponseWriter}
	case spec.Reset:
		return &cut{w: b.ResponseWriter, left: b.passing(), end: b.reset}
	default:
		return &cut{w: b.ResponseWriter, left: b.passing(), end: func() error { return errCut }}
	}
}

// passing is how many bytes pass before the body is cut.
func (b *body) passing() int64 {
	if b.After != nil {
		return *b.After
	}
	length, err := strconv.ParseInt(b.Header().Get("Content-Length"), 10, 64)
	if err != nil {
		return 0
	}
	return length / 2
}

// inverted writes other bytes, and as many.
type inverted struct{ w io.Writer }

func (i inverted) Write(p []byte) (int, error) {
	other := make([]byte, len(p))
	for at, value := range p {
		other[at] = ^value
	}
	return i.w.Write(other)
}

// cut ends a body early.
type cut struct {
	w    io.Writer
	left int64
	end  func() error
}

func (c *cut) Write(p []byte) (int, error) {
	if int64(len(p)) <= c.left {
		n, err := c.w.Write(p)
		c.left -= int64(n)
		return n, err
	}
	n, err := c.w.Write(p[:c.left])
	c.left -= int64(n)
	if err != nil {
		return n, err
	}
	return n, c.end()
}

// slow writes no more bytes a second than the fault lets pass, each as soon as its time has come.
type slow struct {
	*body
	began time.Time
	sent  int64
}

// portions is in how many parts the bytes of a second go.
const portions = 10

func (s *slow) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		portion := min(int64(len(p)-written), max(1, s.Rate/portions))
		due := s.began.Add(time.Duration(float64(s.sent+portion) / float64(s.Rate) * float64(time.Second)))
		if !s.waitUntil(s.request.Context(), time.After(time.Until(due))) {
			return written, s.request.Context().Err()
		}
		n, err := s.ResponseWriter.Write(p[written : written+int(portion)])
		written += n
		s.sent += int64(n)
		if err != nil {
			return written, err
		}
		// Whoever cannot flush sends the bytes later, by itself.
		_ = http.NewResponseController(s.ResponseWriter).Flush()
	}
	return written, nil
}
