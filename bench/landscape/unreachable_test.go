package landscape

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func TestUnreachable(t *testing.T) {
	refusing, err := Refusing()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", refusing); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to the refusing address: %v", err)
	}
	hanging, err := Hang()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("tcp", hanging.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := connection.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("reading from the hanging server: %v", err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return hanging.Accepted() > 0, nil // the kernel connects before Accept returns
	})
	if n := hanging.Accepted(); err != nil || n != 1 {
		t.Errorf("%d connections, error %v", n, err)
	}
	if err := hanging.Close(); err != nil {
		t.Error(err)
	}
}
