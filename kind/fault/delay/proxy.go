package delay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// dialTimeout bounds connecting to the server, which is on the same machine.
	dialTimeout = 10 * time.Second
	// chunkBytes are read at once; chunksHeld of a connection wait for their time, then the server has to wait, too.
	chunkBytes = 32 << 10
	chunksHeld = 256
)

// Serve accepts connections and hands them on to the address target until ctx ends, which is no error. Requests pass at once, what is
// answered to them after the delay, however much it is.
func Serve(ctx context.Context, listener net.Listener, target string, delay time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		client, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection: %w", err)
		}
		open.Go(func() { carry(ctx, client, target, delay) })
	}
}

// carry connects a client with the server until both have ended, or one has failed. A server that cannot be reached looks to the client
// like one that ends the connection.
func carry(ctx context.Context, client net.Conn, target string, delay time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	var both sync.WaitGroup
	pass := func(to, from net.Conn, by func(io.Writer, io.Reader) error) {
		both.Go(func() {
			err := by(to, from)
			if half, ok := to.(*net.TCPConn); ok && err == nil {
				err = half.CloseWrite()
			}
			if err != nil {
				cancel() // the other direction is good for nothing any more
			}
		})
	}
	pass(server, client, func(to io.Writer, from io.Reader) error { _, err := io.Copy(to, from); return err })
	pass(client, server, func(to io.Writer, from io.Reader) error { return later(ctx, to, from, delay) })
	both.Wait()
	_, _ = client.Close(), server.Close()
}

// chunk is what was read at once, and when it is to be handed on.
type chunk struct {
	due  time.Time
	data []byte
}

// later copies, each part the delay after it was read.
func later(ctx context.Context, to io.Writer, from io.Reader, delay time.Duration) error {
	held := make(chan chunk, chunksHeld)
	failed := make(chan error, 1)
	go func() {
		defer close(held)
		for {
			data := make([]byte, chunkBytes)
			n, err := from.Read(data)
			if n > 0 {
				select {
				case held <- chunk{time.Now().Add(delay), data[:n]}:
				case <-ctx.Done():
					failed <- context.Cause(ctx)
					return
				}
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	for c := range held {
		select {
		case <-time.After(time.Until(c.due)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if _, err := to.Write(c.data); err != nil {
			return err
		}
	}
	if err := <-failed; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
