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
	"net/http/httptrace"
	"strconv"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport returns a transport, which connects with race if dial is nil. As containerd's
// transport does, it uses only HTTP/1.1: HTTP/2 would buffer up to 4 MiB of each answer in memory,
// and one broken connection would break all concurrent requests.
func newTransport(roots *x509.CertPool, dial Dial) *http.Transport {
	if dial == nil {
		one := &net.Dialer{KeepAlive: 15 * time.Second}
		dial = race{net.DefaultResolver.LookupHost, one.DialContext}.dial
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    time.Second,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true, // layers are already compressed, and a digest is that of the bytes that are sent
	}
}

type wires struct{ *http.Transport }

// RoundTrip implements http.RoundTripper. It counts and measures requests.
func (w wires) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Response != nil { // a redirect: the previous URL may be signed
		request = request.Clone(request.Context())
		request.Header.Del("Referer")
	}
	start := time.Now()
	response, err := w.Transport.RoundTrip(request)
	if err == nil && response.StatusCode/100 == 3 {
		if _, invalid := response.Location(); invalid != nil && !errors.Is(invalid, http.ErrNoLocation) {
			_ = response.Body.Close() // an error of net/http would repeat the URL, which may be signed
			response, err = nil, errors.New("the upstream redirects to an invalid URL")
		}
	}
	switch {
	case err == nil:
		metrics.Upstream.WithLabelValues(strconv.Itoa(response.StatusCode)).Inc()
		metrics.Latency.Observe(time.Since(start).Seconds())
		return response, nil
	case errors.Is(context.Cause(request.Context()), context.Canceled):
		metrics.Upstream.WithLabelValues("canceled").Inc()
	default:
		metrics.Upstream.WithLabelValues("error").Inc()
	}
	return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Host, err) // the rest of the URL may be signed
}

// largestToken is the maximum size of a token server's answer in bytes.
const largestToken = 1 << 20

// discreet is a transport for token servers. Its errors are *AwayError or, if verdicts is set,
// *RefusedError. They contain the reason for a failed connection, but no text of an answer: errors
// of net/http would quote an answer that is not HTTP.
type discreet struct {
	http.RoundTripper
	verdicts bool // return an error for a status of 400 or above
}

// Discreet returns a transport for a token server. It limits an answer to 1 MiB, and its errors
// contain no text of an answer. dial may be nil.
func Discreet(roots *x509.CertPool, dial Dial) http.RoundTripper {
	transport := newTransport(roots, dial)
	transport.DisableKeepAlives = true // requests are rare, and net/http does not retry a POST
	return discreet{RoundTripper: transport}
}

// RoundTrip implements http.RoundTripper.
func (d discreet) RoundTrip(request *http.Request) (*http.Response, error) {
	connected := request.Response != nil // the address of a redirect is part of an answer, so errors must not contain it
	ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	response, err := d.RoundTripper.RoundTrip(request.WithContext(ctx))
	switch {
	case err == nil && d.verdicts && response.StatusCode >= 400:
		_ = response.Body.Close() // nobody needs the body, which may never end
		return nil, verdict(response)
	case err == nil:
		response.Body = http.MaxBytesReader(nil, response.Body, largestToken)
		return response, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, io.EOF):
		err = io.EOF
	case connected:
		err = errors.New("its answer cannot be read")
	}
	return nil, &AwayError{cause: err}
}

type passing struct{}

// Passing returns a context for a request whose answer a client reads at its own pace.
func Passing(ctx context.Context) context.Context { return context.WithValue(ctx, passing{}, true) }

const (
	// idle is the time within which a body must deliver slowest bytes, or, with Passing, one byte.
	idle    = 10 * time.Second
	slowest = 64 << 10
)

var errTrickles = fmt.Errorf("the upstream sent less than %d KiB in %s", slowest>>10, idle)

// pacedBody fails if the upstream is too slow. Only time spent in Read counts.
type pacedBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	least  int64 // bytes to deliver in each period
	period time.Duration
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
		b.got, b.left = 0, b.period
	}
	return n, err
}

// Close implements io.Closer.
func (b *pacedBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}

const (
	dialTimeout = time.Second
	// nextAddress is the delay before the next address is tried in parallel (RFC 8305, section 5).
	nextAddress   = 250 * time.Millisecond
	mostAddresses = 8
)

// race dials the addresses of a host in parallel, and returns the first connection. net.Dialer
// dials those of one family one after the other, so one that does not answer uses up the time.
type race struct {
	lookUp  func(ctx context.Context, host string) ([]string, error)
	connect Dial // to one address
}

func (r race) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, _ := net.SplitHostPort(address)
	found, err := r.lookUp(ctx, host)
	if err != nil {
		return nil, err
	}
	found = found[:min(len(found), mostAddresses)]
	won, lost, failed := make(chan net.Conn), make(chan error, len(found)), []error(nil)
	for tried := 0; tried == 0 || len(failed) < len(found); {
		var next <-chan time.Time
		if tried < len(found) {
			one := net.JoinHostPort(found[tried], port)
			go func() {
				conn, err := r.connect(ctx, network, one)
				if err != nil {
					lost <- err
					return
				}
				select {
				case won <- conn:
				case <-ctx.Done(): // another address was faster, or the time has run out
					_ = conn.Close()
				}
			}()
			tried++
			next = time.After(nextAddress)
		}
		select {
		case <-next:
		case conn := <-won:
			return conn, nil
		case err := <-lost:
			failed = append(failed, err)
		case <-ctx.Done():
			return nil, errors.Join(append(failed, fmt.Errorf("connect to %s: %w", address, ctx.Err()))...)
		}
	}
	return nil, errors.Join(failed...)
}
