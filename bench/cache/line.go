package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// burst is what a limited line passes on at once: 2.5 ms of a line with 100 MB/s.
	burst         = 256 << 10
	copyBuffer    = 256 << 10
	headerTimeout = 10 * time.Second
)

// conditions describe a line.
type conditions struct {
	// Delay holds back each request.
	Delay time.Duration
	// Rate limits the bodies of all answers together, in bytes per second. 0 means no limit.
	Rate int
	// CutAfter cuts the connection after so many bytes of each body. 0 means never.
	CutAfter int64
}

// Traffic counts what passed a line. Bytes are those of bodies.
type Traffic struct {
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
}

// Since returns what passed after the earlier count.
func (t Traffic) Since(earlier Traffic) Traffic {
	return Traffic{Requests: t.Requests - earlier.Requests, Bytes: t.Bytes - earlier.Bytes}
}

// line is a proxy in front of the upstream.
type line struct {
	// URL is where clients connect to.
	URL string

	conditions      conditions
	server          *http.Server
	transport       *http.Transport
	limiter         *rate.Limiter
	hanging         atomic.Bool
	requests, bytes atomic.Int64
}

// openLine returns a new line to the upstream. The caller must close it.
func openLine(upstream string, c conditions) (*line, error) {
	target, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("URL of the upstream: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	if err != nil {
		return nil, fmt.Errorf("open a line to the upstream: %w", err)
	}
	l := &line{
		URL: "http://" + listener.Addr().String(), conditions: c,
		transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true},
		limiter:   rate.NewLimiter(rate.Inf, burst),
	}
	if c.Rate > 0 {
		l.limiter.SetLimit(rate.Limit(c.Rate))
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: l.transport,
		ModifyResponse: l.watch, BufferPool: buffers{}, ErrorLog: log.New(io.Discard, "", 0),
	}
	l.server = &http.Server{Handler: l.admit(proxy), ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = l.server.Serve(listener) }() // returns when the line is closed
	return l, nil
}

// Close ends the line and all its connections.
func (l *line) Close() error {
	err := l.server.Close()
	l.transport.CloseIdleConnections()
	return err
}

// Hang makes the line accept all further requests and answer none.
func (l *line) Hang() { l.hanging.Store(true) }

// Traffic returns what has passed so far.
func (l *line) Traffic() Traffic { return Traffic{Requests: l.requests.Load(), Bytes: l.bytes.Load()} }

// admit counts and delays requests.
func (l *line) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.requests.Add(1)
		if l.hanging.Load() {
			<-r.Context().Done()
			return
		}
		select {
		case <-time.After(l.conditions.Delay):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

func (l *line) watch(response *http.Response) error {
	response.Body = &body{ReadCloser: response.Body, line: l, ctx: response.Request.Context()}
	return nil
}

var errCut = errors.New("the line cuts this answer")

// body is the body of an answer on its way through a line.
type body struct {
	io.ReadCloser
	line *line
	ctx  context.Context
	read int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	p = p[:min(len(p), burst)] // the limiter passes no more on at once
	if cut := b.line.conditions.CutAfter; cut > 0 {
		if b.read >= cut {
			return 0, errCut
		}
		p = p[:min(int64(len(p)), cut-b.read)]
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	b.line.bytes.Add(int64(n))
	if waited := b.line.limiter.WaitN(b.ctx, n); waited != nil && err == nil {
		err = waited
	}
	return n, err
}

// buffers is the pool of a line's copy buffers. Large ones keep the line cheap, because it shares
// the CPUs with what is measured.
type buffers struct{}

var pool = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return pool.Get().(*[copyBuffer]byte)[:] } //nolint:errcheck // see pool

// Put implements httputil.BufferPool.
func (buffers) Put(b []byte) { pool.Put((*[copyBuffer]byte)(b)) }
