package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// proxy answers the two kinds of proxy requests (RFC 9110, 3.7 and 9.3.6).
type proxy struct {
	ctx     context.Context // the context of the tunnels, which outlive their requests
	dialer  net.Dialer
	forward *httputil.ReverseProxy
}

// newProxy returns a forward proxy that writes an accesslog.Record of each request. The record
// names the target host, and for http:// URLs also the requested path. A tunnel is recorded when it
// opens. Its traffic is not recorded. Tunnels are closed when ctx ends.
func newProxy(ctx context.Context, records io.Writer) http.Handler {
	p := &proxy{ctx: ctx, dialer: net.Dialer{Timeout: 10 * time.Second}}
	p.forward = &httputil.ReverseProxy{
		// ReverseProxy sends the request to its absolute URL without the headers for the proxy itself.
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		// This transport uses no proxy itself and forwards content unchanged.
		Transport:    &http.Transport{DialContext: p.dialer.DialContext, DisableCompression: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, err) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	return accesslog.NewLog(records).Handler(p)
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is a proxy: request an http:// URL, or use CONNECT for other schemes", http.StatusBadRequest)
	}
}

func refuse(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusBadGateway) }

// tunnel connects the client to the host and returns. Traffic continues until both directions end.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := p.dialer.DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		refuse(w, err)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = target.Close()
		refuse(w, err)
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	closeBoth := func() { _, _ = client.Close(), target.Close() }
	stop := context.AfterFunc(p.ctx, closeBoth) //nolint:contextcheck // a tunnel outlives its request and ends with the proxy
	go func() {
		defer stop()
		defer closeBoth()
		var ways sync.WaitGroup
		// Read from buffered: it also contains bytes that the client has already sent.
		ways.Go(func() { pass(target, buffered) })
		ways.Go(func() { pass(client, target) })
		ways.Wait()
	}()
}

// pass copies until one side fails or ends, and then closes the write side of the destination.
func pass(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
