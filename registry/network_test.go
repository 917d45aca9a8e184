package registry

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Tests in virtual time use a network in memory, whose ports start at memoryPort. Kernel sockets
// have no such ports, so the port of an address identifies the network.
const memoryPort = 70_000

var (
	memory     sync.Map // *memoryListener by port
	memoryNext atomic.Int64
	bubbles    sync.Map // tests run by Virtually
)

type memoryListener struct {
	*diffListener
	address *net.TCPAddr
}

// Addr implements net.Listener.
func (l *memoryListener) Addr() net.Addr { return l.address }

// Close implements net.Listener. Later connections are refused.
func (l *memoryListener) Close() error {
	memory.CompareAndDelete(strconv.Itoa(l.address.Port), l)
	return l.diffListener.Close()
}

// InMemory reports whether a URL's server is in the network in memory.
func InMemory(of string) bool {
	target, err := url.Parse(of)
	if err != nil {
		return false
	}
	port, err := strconv.Atoi(target.Port())
	return err == nil && port >= memoryPort
}

// Listen listens on a free port of an IP address: in memory if the test runs virtually.
func Listen(t *testing.T, ip string) net.Listener {
	t.Helper()
	if !IsVirtual(t) {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ip+":0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return listenInMemory(&net.TCPAddr{IP: net.ParseIP(ip), Port: memoryPort + int(memoryNext.Add(1))})
}

func listenInMemory(address *net.TCPAddr) net.Listener {
	l := &memoryListener{newDiffListener(), address}
	memory.Store(strconv.Itoa(address.Port), l)
	return l
}

// Dial connects to an address of either network.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if n, invalid := strconv.Atoi(port); err != nil || invalid != nil || n < memoryPort {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	if l, ok := memory.Load(port); ok {
		return l.(*memoryListener).dial(ctx)
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
}

// NewTransport returns a transport for both networks.
func NewTransport() *http.Transport {
	return &http.Transport{DialContext: Dial, DisableKeepAlives: true}
}

// newHTTPServer starts a server in the network of the test.
func newHTTPServer(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	s := &httptest.Server{Listener: Listen(t, "127.0.0.1"), Config: &http.Server{Handler: handler}} //nolint:gosec // of a test
	s.Start()
	return s
}

// clientOf returns a client for the network of the test.
func clientOf(t *testing.T) *http.Client {
	t.Helper()
	if IsVirtual(t) {
		return &http.Client{Transport: NewTransport()}
	}
	return http.DefaultClient
}

// Virtually runs a test in parallel with others, and in virtual time. This time passes only while
// all goroutines of the test wait. So a busy machine does not affect the times.
func Virtually(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	now := time.Now()
	synctest.Test(t, func(t *testing.T) {
		bubbles.Store(t, nil)
		defer bubbles.Delete(t)
		t.Cleanup(func() { diffSleep(time.Minute) }) // the test's goroutines need time to end
		diffSleep(time.Until(now))                   // the bubble begins in 2000, but files use the host's time
		test(t)
	})
}

// IsVirtual reports whether a test runs virtually.
func IsVirtual(t *testing.T) bool { _, is := bubbles.Load(t); return is }

// ServeVirtually is Serve for a virtual test. It does not watch the disk, whose time is real.
func ServeVirtually(t *testing.T, config *Config, log io.Writer) (address string, stop func()) {
	t.Helper()
	startLog(config, log)
	handler, end, err := diffOpen(context.WithoutCancel(t.Context()), config, Dial)
	if err != nil {
		t.Fatal(err)
	}
	listener := Listen(t, "127.0.0.3")
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), sync.OnceFunc(func() {
		_ = shutdown(context.Background(), server, config.HTTP.DrainTimeout)
		end()
	})
}
