package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/health"
	"golang.org/x/sys/unix"
)

const (
	maxRequest  = 512                     // bytes; curl sends less than 100
	requestTime = 1500 * time.Millisecond // a node waits no longer for the answer
)

// listener answers probes on the connections that it accepts.
type listener struct {
	net.Listener
	answer      []byte
	certificate *tls.Certificate
	others      chan accepted
	closed      context.Context //nolint:containedctx // of this listener, not of a call
	close       context.CancelFunc
}

// accepted is a result of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

// Listen takes over a listener for TCP. It answers a connection that begins with GET /v2/ in plain
// HTTP, also on a port for TLS: with a handshake the answer would cost seven times as much CPU time
// (BenchmarkProbe in cmd/registry-cache). The answer is Handler's, without a date, and ends the
// connection. Accept returns all other connections, with nothing read.
//
// It answers only while the cache can serve: no health check of distribution fails, and the
// certificate, which is nil on a port without TLS, has not expired. The headers are http.headers of
// the configuration. Close also closes connections that nobody has accepted, within 1.5 s.
func Listen(on net.Listener, headers http.Header, certificate *tls.Certificate) net.Listener {
	var answer bytes.Buffer
	response := http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: answerHeaders(headers), Close: true,
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}
	_ = response.Write(&answer) // a buffer takes everything
	l := &listener{Listener: on, answer: answer.Bytes(), certificate: certificate, others: make(chan accepted)}
	l.closed, l.close = context.WithCancel(context.Background())
	go l.run()
	return l
}

// run accepts connections until Close. What an error means is up to the caller of Accept.
func (l *listener) run() {
	for l.closed.Err() == nil {
		if conn, err := l.Listener.Accept(); err != nil {
			l.pass(accepted{err: err})
		} else {
			go l.sort(conn)
		}
	}
}

func (l *listener) sort(conn net.Conn) {
	if l.answered(conn) || !l.pass(accepted{conn: conn}) {
		_ = conn.Close()
	}
}

// pass waits for a call of Accept, and reports whether one came before Close.
func (l *listener) pass(a accepted) bool {
	select {
	case l.others <- a:
		return true
	case <-l.closed.Done():
		return false
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.others:
		return a.conn, a.err
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.close()
	return l.Listener.Close()
}

// answered reports whether the connection began with a probe, and was answered.
func (l *listener) answered(conn net.Conn) bool {
	request := make([]byte, maxRequest)
	request = request[:peek(conn, request)]
	if !isProbe(request) || l.closed.Err() != nil || len(health.CheckStatus(l.closed)) > 0 ||
		l.certificate != nil && time.Now().After(l.certificate.Leaf.NotAfter) {
		return false
	}
	_, _ = conn.Read(request) // Close resets a connection with unread bytes
	_, _ = conn.Write(l.answer)
	return true
}

// isProbe reports whether these bytes are one whole request, and a probe.
func isProbe(request []byte) bool {
	rest, found := bytes.CutPrefix(request, []byte("GET /v2/ HTTP/1."))
	_, next, ended := bytes.Cut(rest, []byte("\r\n\r\n"))
	return found && ended && len(next) == 0
}

// peek waits for the first bytes of a connection and copies them into the buffer; they stay unread.
// It returns their number, which is 0 if none came in time, or if this is no TCP connection.
func peek(conn net.Conn, buffer []byte) (n int) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.SetReadDeadline(time.Now().Add(requestTime))
	_ = raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), buffer, unix.MSG_PEEK)
		return err != unix.EAGAIN //nolint:errorlint // it is an errno
	})
	_ = conn.SetReadDeadline(time.Time{})
	return max(n, 0)
}
