package landscape

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Refusing returns a host:port that refuses connections.
func Refusing() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// Hanging is a server that accepts connections and never responds.
type Hanging struct {
	listener net.Listener

	mu          sync.Mutex
	connections []net.Conn
}

// Hang starts a Hanging server. The caller must call Close.
func Hang() (*Hanging, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	h := &Hanging{listener: listener}
	go h.accept()
	return h, nil
}

// Address returns host:port.
func (h *Hanging) Address() string { return h.listener.Addr().String() }

// Accepted returns the number of connections so far.
func (h *Hanging) Accepted() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.connections)
}

// Close stops listening and ends all connections.
func (h *Hanging) Close() error {
	err := h.listener.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, connection := range h.connections {
		err = errors.Join(err, connection.Close())
	}
	return err
}

func (h *Hanging) accept() {
	for {
		connection, err := h.listener.Accept()
		if err != nil { // closed
			return
		}
		h.mu.Lock()
		h.connections = append(h.connections, connection)
		h.mu.Unlock()
	}
}
