package delay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// listen returns a listener that is closed with the test.
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

// TestServe checks that each answer arrives after the delay, and a long one after one delay, not
// after one for each chunk.
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

// TestHalfClose checks that a client gets the answer after it has closed its side.
func TestHalfClose(t *testing.T) {
	client, _ := behind(t, 10*time.Millisecond, func(c net.Conn) {
		request, err := io.ReadAll(c)
		if err == nil {
			_, _ = c.Write(append([]byte("got: "), request...))
		}
	})
	if _, err := io.WriteString(client, "all"); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || string(got) != "got: all" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestNoServer checks that the connection of the client is closed.
func TestNoServer(t *testing.T) {
	gone, proxy := listen(t), listen(t)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = Serve(t.Context(), proxy, gone.Addr().String(), time.Millisecond) }()
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
