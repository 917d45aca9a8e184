package registry_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// names maps names to their addresses for the whole process, instead of the DNS.
var names sync.Map // of []string

func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return &nameServer{}, nil
	}}
	// The first lookup creates a channel that all others use. It must not belong to a virtual test.
	_, _ = net.DefaultResolver.LookupHost(context.Background(), "first.example")
}

// named makes a name resolve to the addresses, in this order.
func named(t *testing.T, name string, addresses ...string) {
	t.Helper()
	if _, taken := names.LoadOrStore(name, addresses); taken {
		t.Fatal(name + " is taken")
	}
}

// nameServer answers a question of net.Resolver at once, without a goroutine.
type nameServer struct{ answers bytes.Buffer }

// Write implements net.Conn. It receives the length of a question and the question.
func (s *nameServer) Write(p []byte) (int, error) {
	var m dnsmessage.Message
	if err := m.Unpack(p[2:]); err != nil {
		return 0, err
	}
	question := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	found, ok := names.Load(strings.TrimSuffix(question.Name.String(), "."))
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	} else if question.Type == dnsmessage.TypeA {
		for _, address := range found.([]string) {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 60},
				Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(address).To4())},
			})
		}
	}
	packed, err := m.Pack()
	if err != nil {
		return 0, err
	}
	_ = binary.Write(&s.answers, binary.BigEndian, uint16(len(packed))) // #nosec G115 -- it is short
	_, _ = s.answers.Write(packed)
	return len(p), nil
}

// Read implements net.Conn.
func (s *nameServer) Read(p []byte) (int, error) { return s.answers.Read(p) }

// Close implements net.Conn.
func (s *nameServer) Close() error { return nil }

// LocalAddr implements net.Conn.
func (s *nameServer) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (s *nameServer) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (s *nameServer) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (s *nameServer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (s *nameServer) SetWriteDeadline(time.Time) error { return nil }

// swallow makes an address silent: the kernel drops new connections to a socket with a full
// backlog.
func swallow(t *testing.T, address string, port int) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	at := &net.TCPAddr{IP: net.ParseIP(address), Port: port}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: [4]byte(at.IP.To4())}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	for {
		connection, err := net.DialTimeout("tcp", at.String(), 100*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = connection.Close() })
	}
}

// TestDeadAddress: if one of the upstream's two addresses does not answer, the other is tried soon.
func TestDeadAddress(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	port := o.Listener.Addr().(*net.TCPAddr).Port
	swallow(t, "127.0.0.9", port)
	named(t, "registry.addresses.example", "127.0.0.9", "127.0.0.1")
	pushed := o.push("v1", 1000)
	for what, ask := range map[string]func(p *process) answer{
		"the manifest": func(p *process) answer { return get(t, p.tag("v1")) },
		"the layer":    func(p *process) answer { return get(t, p.blob(pushed.layer.String())) },
	} {
		bestOf(t, what, func(int) answer { // each needs a new connection
			return ask(start(t, strings.Replace(o.URL, "127.0.0.1", "registry.addresses.example", 1), t.TempDir()))
		})
	}
}
