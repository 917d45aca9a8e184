package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

type connectionKey struct{}

// withConnection is for http.Server.ConnContext: a fault may reset the connection of a request, of HTTP/2 too.
func withConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// reset makes the client's system report a connection that was reset by its peer. What it has received by then, it may still
// read; what the system here had not sent yet is lost.
func (b *body) reset() error {
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	connection, _ := b.request.Context().Value(connectionKey{}).(net.Conn)
	if secure, ok := connection.(*tls.Conn); ok {
		connection = secure.NetConn()
	}
	if plain, ok := connection.(*net.TCPConn); ok {
		// Without lingering, to close is to reset.
		_ = plain.SetLinger(0)
		_ = plain.Close()
	}
	panic(http.ErrAbortHandler)
}
