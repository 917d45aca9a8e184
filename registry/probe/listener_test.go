package probe_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/health"

	"github.com/gardener-extensions/registry-cache/registry/probe"
)

const patience = 20 * time.Second

const request = "GET /v2/ HTTP/1.1\r\nHost: 10.4.12.9:5000\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"

// checks is a health check, which can be registered once in a process.
var checks = health.NewStatusUpdater()

func init() { health.Register("listener", checks) }

// serve starts a server that answers 418 behind the listener, and returns its address.
func serve(t *testing.T, certificate *tls.Certificate) string {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
		ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
	}
	listener, ended := probe.Listen(tcp, http.Header{"x-content-type-options": {"nosniff"}}, certificate), make(chan error)
	go func() {
		if certificate == nil {
			ended <- server.Serve(listener)
			return
		}
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
		ended <- server.ServeTLS(listener, "", "")
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return tcp.Addr().String()
}

func certificate(t *testing.T, notAfter time.Time) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// send writes a request, and returns the status and the headers of the answer.
func send(t *testing.T, conn net.Conn, request string) (int, http.Header) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		if content, err := io.ReadAll(response.Body); err != nil || string(content) != "{}" {
			t.Errorf("the body is %q, %v", content, err)
		}
	}
	return response.StatusCode, response.Header
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestListener(t *testing.T) {
	valid, expired := certificate(t, time.Now().Add(time.Hour)), certificate(t, time.Now().Add(-time.Hour))
	for _, test := range []struct {
		name        string
		certificate *tls.Certificate
		err         error // of the health check
		request     string
		want        int
	}{
		{name: "a probe", request: request, want: 200},
		{name: "a probe without TLS on a port for TLS", certificate: valid, request: request, want: 200},
		{name: "an expired certificate", certificate: expired, request: request, want: 400},
		{name: "the cache cannot serve", err: errors.New("input/output error"), request: request, want: 418},
		{name: "the cache cannot serve TLS", certificate: valid, err: errors.New("input/output error"), request: request, want: 400},
		{name: "another path", request: strings.Replace(request, "/v2/", "/v2/a/manifests/b", 1), want: 418},
		{name: "a query", request: strings.Replace(request, "/v2/", "/v2/?ns=other.test", 1), want: 418},
		{name: "another method", request: strings.Replace(request, "GET", "HEAD", 1), want: 418},
		{name: "without TLS on a port for TLS", certificate: valid, request: strings.Replace(request, "/v2/", "/v2/a/manifests/b", 1), want: 400},
		{name: "with the next request", request: request + request, want: 418},
		{name: "with a long header", request: strings.Replace(request, "*/*", strings.Repeat("*", 1000), 1), want: 418},
	} {
		t.Run(test.name, func(t *testing.T) {
			checks.Update(test.err)
			defer checks.Update(nil)
			conn := dial(t, serve(t, test.certificate))
			status, headers := send(t, conn, test.request)
			if status != test.want {
				t.Errorf("the answer is %d, want %d", status, test.want)
			}
			if status != http.StatusOK {
				return
			}
			if rest, err := io.ReadAll(conn); headers.Get("X-Content-Type-Options") != "nosniff" || len(rest) > 0 || err != nil {
				t.Errorf("the headers are %v, and the rest is %q, %v", headers, rest, err)
			}
		})
	}
}

// TestTLS: the server gets what begins with a handshake, also a probe.
func TestTLS(t *testing.T) {
	address := serve(t, certificate(t, time.Now().Add(time.Hour)))
	conn := tls.Client(dial(t, address), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is self-signed
	if status, _ := send(t, conn, request); status != http.StatusTeapot {
		t.Errorf("the server answers %d", status)
	}
}

// listen returns a listener without a server.
func listen(t *testing.T) (listener net.Listener, address string) {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener = probe.Listen(tcp, nil, nil)
	t.Cleanup(func() { _ = listener.Close() })
	return listener, tcp.Addr().String()
}

func accept(t *testing.T, listener net.Listener) net.Conn {
	t.Helper()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestPart: nothing is read of a request that comes in parts.
func TestPart(t *testing.T) {
	listener, address := listen(t)
	client := dial(t, address)
	if _, err := io.WriteString(client, request[:30]); err != nil {
		t.Fatal(err)
	}
	conn := accept(t, listener)
	if _, err := io.WriteString(client, request[30:]); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(request))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != request {
		t.Errorf("the server reads %q, %v", got, err)
	}
	_ = conn.Close()
}

// TestSilentClients: a connection without a request holds up no other. The server gets it after a
// while, without a deadline.
func TestSilentClients(t *testing.T) {
	listener, address := listen(t)
	silent := dial(t, address)
	if status, _ := send(t, dial(t, address), request); status != http.StatusOK {
		t.Errorf("the answer is %d", status)
	}
	conn := accept(t, listener)
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(silent, "G"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// TestClose: nothing is answered or left open after Close.
func TestClose(t *testing.T) {
	listener, address := listen(t)
	silent, waiting := dial(t, address), dial(t, address)
	if _, err := io.WriteString(waiting, "HEAD /v2/ HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if status, _ := send(t, dial(t, address), request); status != http.StatusOK { // the others are known, too
		t.Errorf("the answer is %d", status)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close, Accept returns %v", err)
	}
	if _, err := io.WriteString(silent, request); err != nil {
		t.Fatal(err)
	}
	for _, conn := range []net.Conn{silent, waiting} {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection is still open: %d bytes, %v", n, err)
		}
	}
}

// failing is a listener that fails before it accepts a connection. It is one of a pipe, not of TCP.
type failing struct {
	net.Listener
	errors []error
	conn   net.Conn
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errors) > 0 {
		err := f.errors[0]
		f.errors = f.errors[1:]
		return nil, err
	}
	if conn := f.conn; conn != nil {
		f.conn = nil
		return conn, nil
	}
	return f.Listener.Accept()
}

// TestErrors: the server gets the errors, and connections after them.
func TestErrors(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, client := net.Pipe()
	defer func() { _ = client.Close() }()
	listener := probe.Listen(&failing{tcp, []error{syscall.EMFILE, syscall.EMFILE}, conn}, nil, nil)
	defer func() { _ = listener.Close() }()
	for range 2 {
		if _, err := listener.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("Accept returns %v", err)
		}
	}
	if got := accept(t, listener); got != conn {
		t.Errorf("Accept returns %v", got)
	}
}
