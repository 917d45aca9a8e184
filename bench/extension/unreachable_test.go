package extension

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

func TestUnreachable(t *testing.T) {
	hanging, refusing, err := Unreachable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", refusing); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to the refusing address: %v", err)
	}
	connection, err := net.Dial("tcp", hanging.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := connection.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("reading from the hanging server: %v", err)
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
	if !Connected(hanging) || Connected(hanging) {
		t.Error("want one connection, also after the client has left")
	}
	if err := hanging.Close(); err != nil {
		t.Error(err)
	}
}
