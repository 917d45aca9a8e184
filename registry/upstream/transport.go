package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// newTransport returns a transport whose phases have bounds.
func newTransport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // layers are compressed, and a digest is that of what is sent
		// A connection that a load balancer forgot would be used until TCP gives up, 15 minutes later.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second},
	}
}

// counted counts and times requests.
type counted struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	start := time.Now()
	response, err := c.next.RoundTrip(request)
	switch {
	case err == nil:
		metrics.Upstream.WithLabelValues(strconv.Itoa(response.StatusCode)).Inc()
		metrics.Latency.Observe(time.Since(start).Seconds())
	case errors.Is(context.Cause(request.Context()), context.Canceled):
		metrics.Upstream.WithLabelValues("canceled").Inc()
	default:
		metrics.Upstream.WithLabelValues("error").Inc()
	}
	return response, err
}

// errStalled ends a body whose next byte took too long.
var errStalled = errors.New("the upstream sent nothing for " + idle.String())

// idleBody is a body that ends with an error when the next byte takes too long.
type idleBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Read implements io.Reader.
func (b *idleBody) Read(p []byte) (int, error) {
	defer time.AfterFunc(idle, func() { b.cancel(errStalled) }).Stop()
	return b.ReadCloser.Read(p)
}

// Close implements io.Closer.
func (b *idleBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}
