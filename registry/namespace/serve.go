package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/cache"
)

// serve sends a blob or the parts for which the request asks.
func serve(ctx context.Context, e *exchange, blob digest.Digest, found *cache.Blob) {
	header := e.writer.Header()
	header.Set("ETag", strconv.Quote(blob.String()))
	header.Set("Docker-Content-Digest", blob.String())
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Cache-Control", "max-age=31536000")
	content := io.ReadSeeker(found.File)
	if found.File == nil {
		content = &arriving{ctx: ctx, exchange: e, blob: found}
	}
	http.ServeContent(e.writer, e.request, "", time.Time{}, content)
	if errors.Is(e.writer.failed, syscall.EIO) && found.File != nil {
		e.err = e.writer.failed
		found.Unreadable()
	}
}

// longestLead is how far a range may start beyond what has arrived of a blob. A client would wait
// for the header until then.
const longestLead = 64 << 20

// startsAfter reports whether the first range of a request starts after the offset.
func startsAfter(ranges string, offset int64) bool {
	var start int64
	n, _ := fmt.Sscanf(ranges, "bytes=%d-", &start) // none for the last bytes: "bytes=-5"
	return n == 1 && start > offset
}

// arriving is a blob on its way. An error of it cuts the answer: net/http has promised more bytes.
type arriving struct {
	ctx      context.Context
	exchange *exchange
	blob     *cache.Blob
	offset   int64
}

// Seek implements io.Seeker.
func (a *arriving) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += a.offset
	case io.SeekEnd:
		offset += a.blob.Size
	}
	if offset < 0 {
		return 0, errors.New("seek before the first byte")
	}
	a.offset = offset
	return offset, nil
}

// Read implements io.Reader, for answers with several ranges.
func (a *arriving) Read(p []byte) (int, error) {
	n := min(int64(len(p)), a.blob.Size-a.offset)
	if n <= 0 {
		return 0, io.EOF
	}
	into := &buffer{p[:0]}
	err := a.copyTo(into, n)
	return len(into.bytes), err
}

// buffer appends to bytes. bytes.Buffer would not do: its ReadFrom allocates, and p would get
// nothing.
type buffer struct{ bytes []byte }

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

// copyTo copies the next n bytes as they arrive.
func (a *arriving) copyTo(w io.Writer, n int64) error {
	err := a.blob.Copy(a.ctx, w, a.offset, a.offset+n)
	if a.offset += n; err != nil {
		a.exchange.err = err
	}
	return err
}

// portion is how much of an answer is written with one deadline.
const portion = 1 << 20

// writer writes an answer in portions with a deadline each. It lets the kernel send files without a
// copy, which distribution's own wrappers prevent.
type writer struct {
	http.ResponseWriter
	patience time.Duration // how long a portion may take
	status   int
	written  int64
	failed   error // of ReadFrom
}

// Unwrap serves http.ResponseController.
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

// ReadFrom implements io.ReaderFrom. For an *os.File in an *io.LimitedReader it is sendfile.
func (w *writer) ReadFrom(from io.Reader) (total int64, err error) {
	limited, ok := from.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{w}, from)
	}
	if blob, ok := limited.R.(*arriving); ok {
		before := w.written
		err := blob.copyTo(w, limited.N)
		return w.written - before, err
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
