package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/cache"
)

// sendBlob sends a blob or the requested part of it. An error cuts the answer short, because its
// header has already been sent.
func (e *exchange) sendBlob(blob digest.Digest, found *cache.Blob) {
	header := e.writer.Header()
	header.Set("Etag", strconv.Quote(blob.String()))
	header.Set("Docker-Content-Digest", blob.String())
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Cache-Control", "max-age=31536000")
	if found.File != nil {
		http.ServeContent(e.writer, e.Request, "", time.Time{}, found.File.File)
		if errors.Is(e.writer.failed, syscall.EIO) {
			e.err = e.writer.failed
			found.Unreadable()
		}
		return
	}
	if found.Size >= 0 {
		header.Set("Content-Length", strconv.FormatInt(found.Size, 10))
	}
	switch {
	case e.Method == http.MethodHead:
		return
	case found.Answer != nil:
		for _, name := range []string{"Content-Range", "Content-Encoding"} {
			if value := found.Answer.Header.Get(name); value != "" {
				header.Set(name, value)
			}
		}
		if kind := found.Answer.Header.Get("Content-Type"); strings.HasPrefix(kind, "multipart/byteranges") {
			header.Set("Content-Type", kind)
		}
		e.writer.WriteHeader(found.Answer.StatusCode)
		_, e.err = io.Copy(struct{ io.Writer }{e.writer}, found.Answer.Body)
	default: // after 206 for bytes=0-, containerd would ask for parts, which not every upstream supports
		_ = http.NewResponseController(e.writer.ResponseWriter).Flush() // send the header now: the first bytes may arrive much later
		e.err = found.Copy(e.Context(), e.writer)
	}
	if e.err != nil {
		panic(http.ErrAbortHandler)
	}
}

// portion is the number of bytes of an answer that share a deadline.
const portion = 1 << 20

// writer writes an answer in portions, each with a deadline, so that a client that does not read
// cannot hold a file and a connection forever. It supports sendfile.
type writer struct {
	http.ResponseWriter
	patience time.Duration // how long a portion may take
	status   int
	written  int64
	failed   error // the error of ReadFrom
}

// Unwrap supports http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.extend()
	n, err := w.ResponseWriter.Write(p)
	w.written += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom. It uses sendfile for an *os.File in an *io.LimitedReader.
func (w *writer) ReadFrom(from io.Reader) (total int64, err error) {
	limited, ok := from.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{w}, from)
	}
	for limited.N > 0 {
		w.extend()
		n, err := io.Copy(w.ResponseWriter, &io.LimitedReader{R: limited.R, N: min(limited.N, portion)})
		w.written, total, limited.N, w.failed = w.written+n, total+n, limited.N-n, err
		if err != nil || n == 0 {
			return total, err
		}
	}
	return total, nil
}

func (w *writer) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.patience))
}

type connectionKey struct{}

// withConnection is the ConnContext of an http.Server: it stores the connection for cut.
func withConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// cut shuts down the sending side of a request's connection, even while a write waits for the disk.
func cut(ctx context.Context) {
	connection, _ := ctx.Value(connectionKey{}).(net.Conn)
	if wrapped, ok := connection.(*tls.Conn); ok {
		connection = wrapped.NetConn()
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}
