package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// Dial connects to an address, as net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport returns a transport whose phases have bounds.
func newTransport(roots *x509.CertPool, dial Dial) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true, // layers are compressed, and a digest is that of what is sent
		// A connection that a load balancer forgot would be used until TCP gives up, 15 minutes
		// later.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second},
	}
}

type passing struct{}

// Passing returns the context of a request whose answer a client reads at its own pace.
func Passing(ctx context.Context) context.Context { return context.WithValue(ctx, passing{}, true) }

// wires sends a request that is passed through with HTTP/1.1: with HTTP/2 up to 4 MiB of each would
// wait in the memory of this process.
type wires struct{ stored, passed *http.Transport }

func newWires(roots *x509.CertPool, dial Dial) wires {
	w := wires{newTransport(roots, dial), newTransport(roots, dial)}
	w.passed.Protocols = new(http.Protocols)
	w.passed.Protocols.SetHTTP1(true)
	return w
}

// RoundTrip implements http.RoundTripper. It counts and times requests.
func (w wires) RoundTrip(request *http.Request) (*http.Response, error) {
	start, wire := time.Now(), w.stored
	if request.Context().Value(passing{}) != nil {
		wire = w.passed
	}
	response, err := wire.RoundTrip(request)
	if err == nil && response.StatusCode/100 == 3 {
		if _, invalid := response.Location(); invalid != nil && !errors.Is(invalid, http.ErrNoLocation) {
			_ = response.Body.Close() // the error of net/http would repeat it, and it may be signed
			response, err = nil, errors.New("the target of a redirect is no URL")
		}
	}
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

// closeIdle closes connections that no request uses: one of them may be dead.
func (w wires) closeIdle() {
	w.stored.CloseIdleConnections()
	w.passed.CloseIdleConnections()
}

const (
	// idle is the time in which a body must bring slowest bytes, or end.
	idle    = 10 * time.Second
	slowest = 64 << 10
)

var errTrickles = fmt.Errorf("the upstream sent less than %d KiB in %s", slowest>>10, idle)

// pacedBody ends with an error when the upstream is too slow. Time in which nobody reads does not
// count.
type pacedBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	least  int64 // bytes in each period
	left   time.Duration
	got    int64
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	start := time.Now()
	late := time.AfterFunc(b.left, func() { b.cancel(errTrickles) })
	n, err := b.ReadCloser.Read(p)
	late.Stop()
	b.left -= time.Since(start)
	if b.got += int64(n); b.got >= b.least {
		b.got, b.left = 0, idle
	}
	return n, err
}

// Close implements io.Closer.
func (b *pacedBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}
