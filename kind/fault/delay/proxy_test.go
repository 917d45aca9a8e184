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

// listen returns a listener that ends with the test.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// behind starts a proxy before a server that handles one connection, and connects to it.
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

// TestServe: each answer comes after the delay, and the parts of a long one all after one delay, not one after another.
func TestServe(t *testing.T) {
	const delay = 300 * time.Millisecond
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB: one after another its parts take longer than the deadline
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
		t.Error("the connection is open after the end of the proxy")
	}
}

// TestHalfClose: a client that has said all still gets the answer, and the end of it.
func TestHalfClose(t *testing.T) {
	client, _ := behind(t, 10*time.Millisecond, func(c net.Conn) {
		said, err := io.ReadAll(c)
		if err == nil {
			_, _ = c.Write(append([]byte("said: "), said...))
		}
	})
	if _, err := io.WriteString(client, "all"); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || string(got) != "said: all" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestNoServer ends the connection of the client.
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
