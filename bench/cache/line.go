package cache

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// burst is the number of bytes that a limited line passes on at once: 2.6 ms at 100 MB/s.
const burst = 256 << 10

// line is a proxy in front of the upstream.
type line struct {
	URL             string       // where clients connect to
	requests, bytes atomic.Int64 // the requests and the bytes of bodies that passed

	row       Row
	server    *http.Server
	transport *http.Transport
	limiter   *rate.Limiter
	hanging   atomic.Bool // further requests are accepted and not answered
}

// openLine returns a new line to the upstream, with the delay, the rate and the cuts of the row.
// The delay holds back each request. The rate limits the bodies of all answers together. The caller
// must close the line.
func openLine(upstream string, row Row) (*line, error) {
	target, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("URL of the upstream: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	if err != nil {
		return nil, fmt.Errorf("open a line to the upstream: %w", err)
	}
	l := &line{
		URL: "http://" + listener.Addr().String(), row: row,
		transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true},
		limiter:   rate.NewLimiter(rate.Inf, burst),
	}
	if row.Rate > 0 {
		l.limiter.SetLimit(rate.Limit(row.Rate))
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: l.transport,
		ModifyResponse: l.watch, BufferPool: buffers{}, ErrorLog: log.New(io.Discard, "", 0),
	}
	l.server = &http.Server{Handler: l.admit(proxy), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = l.server.Serve(listener) }() // returns when the line is closed
	return l, nil
}

// Close ends the line and all its connections.
func (l *line) Close() error {
	err := l.server.Close()
	l.transport.CloseIdleConnections()
	return err
}

// admit counts and delays requests.
func (l *line) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.requests.Add(1)
		if l.hanging.Load() {
			<-r.Context().Done()
			return
		}
		select {
		case <-time.After(l.row.Delay):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// watch makes the body of an answer count and limit its bytes, see body.
func (l *line) watch(response *http.Response) error {
	if l.row.Fault == Cuts {
		response.Body = http.MaxBytesReader(nil, response.Body, cutAfter)
	}
	response.Body = &body{ReadCloser: response.Body, line: l, ctx: response.Request.Context()}
	return nil
}

// body counts the bytes of an answer on its way through a line, and limits them to the line's rate.
type body struct {
	io.ReadCloser
	line *line
	ctx  context.Context
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), burst)]) // the limiter allows no more at once
	b.line.bytes.Add(int64(n))
	if waited := b.line.limiter.WaitN(b.ctx, n); waited != nil && err == nil {
		err = waited
	}
	return n, err
}

// buffers allocates a line's copy buffers. Large buffers save CPU time, which the line must not
// take from the contenders.
type buffers struct{}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return make([]byte, burst) }

// Put implements httputil.BufferPool.
func (buffers) Put([]byte) {}
