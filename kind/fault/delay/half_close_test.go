package delay

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestHalfClose checks that a client still gets the answer after it has called CloseWrite.
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

// TestNoServer checks that the client's connection is closed if the server is unreachable.
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
