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
	dialTimeout = 10 * time.Second // to the server, on the same machine
	// chunkBytes limits one read. If a connection holds chunksHeld chunks, the server must wait.
	chunkBytes = 32 << 10
	chunksHeld = 256
)

// Serve forwards connections to the address target until ctx ends. It delays answers, but not
// requests. The delay of an answer does not depend on its size.
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
		open.Go(func() { forward(ctx, client, target, delay) })
	}
}

func forward(ctx context.Context, client net.Conn, target string, delay time.Duration) {
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
	pass := func(to, from net.Conn, send func(io.Writer, io.Reader) error) {
		both.Go(func() {
			err := send(to, from)
			if half, ok := to.(*net.TCPConn); ok && err == nil {
				err = half.CloseWrite()
			}
			if err != nil {
				cancel() // the other direction is useless now
			}
		})
	}
	pass(server, client, func(to io.Writer, from io.Reader) error { _, err := io.Copy(to, from); return err })
	pass(client, server, func(to io.Writer, from io.Reader) error { return copyDelayed(ctx, to, from, delay) })
	both.Wait()
	_, _ = client.Close(), server.Close()
}

type chunk struct {
	due  time.Time
	data []byte
}

// copyDelayed copies data. It writes each chunk as soon as the delay has passed since it read the
// chunk.
func copyDelayed(ctx context.Context, to io.Writer, from io.Reader, delay time.Duration) error {
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
