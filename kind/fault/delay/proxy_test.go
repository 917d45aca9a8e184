package delay

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// listen returns a listener that is closed at the end of the test.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// behind starts a server for one connection and a proxy, and connects to the proxy.
func behind(t *testing.T, delay time.Duration, handle func(net.Conn)) (client *net.TCPConn, stop func() error) {
	t.Helper()
	server, proxy := listen(t), listen(t)
	go func() {
		connection, err := server.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		handle(connection)
	}()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, proxy, server.Addr().String(), delay) }()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(); cancel() })
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return connection.(*net.TCPConn), func() error { cancel(); return <-ended }
}

// TestServe checks that each answer arrives after the delay. A long answer is delayed once, not for
// each of its chunks.
func TestServe(t *testing.T) {
	const delay = 300 * time.Millisecond
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB: a delay for each chunk would exceed the deadline
	client, stop := behind(t, delay, func(c net.Conn) {
		question := make([]byte, 1)
		for {
			if _, err := io.ReadFull(c, question); err != nil {
				return
			}
			answer := []byte("a")
			if question[0] == 'L' {
				answer = large
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	})
	for _, want := range [][]byte{[]byte("a"), large, []byte("a")} {
		question := "s"
		if len(want) > 1 {
			question = "L"
		}
		asked := time.Now()
		if _, err := io.WriteString(client, question); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: %v", len(want), err)
		}
		if took := time.Since(asked); took < delay {
			t.Errorf("%d bytes came after %s, want %s at least", len(want), took, delay)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open after the proxy has ended")
	}
}
