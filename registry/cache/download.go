package cache

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

const (
	// attempts is the number of consecutive attempts without progress after which a download fails.
	attempts = 4
	progress = 1 << 20
	pause    = 250 * time.Millisecond
	buffer   = 256 << 10
	// mostCodings limits the number of content codings of an answer, because each needs memory.
	mostCodings = 4
	// step is the number of bytes by which the room of a blob of unknown size grows.
	step = 4 << 20
)

// download downloads a blob into the file of its arrival. Only one goroutine may use it.
type download struct {
	*arrival
	spool
	link     store.Link
	response *http.Response // the answer that is read next, or nil
	encoding string
}

// spool writes and hashes the bytes of a blob.
type spool struct {
	to     *os.File
	room   *room
	hash   hash.Hash
	length int64 // the length of the file
	hashed int64 // how many bytes from the start of the file have been hashed
}

// Write implements io.Writer. Its errors wrap errDisk.
func (s *spool) Write(p []byte) (int, error) {
	n := int64(len(p))
	if s.room.awaited < n && !s.room.step(s.length) {
		return 0, errNoRoom
	}
	if _, err := s.to.Write(p); err != nil {
		return 0, fmt.Errorf("%w: %w", errDisk, err)
	}
	s.room.wrote(n)
	if s.hashed == s.length {
		_, _ = s.hash.Write(p)
		s.hashed += n
	}
	s.length += n
	return len(p), nil
}

// verify returns errDamaged if the file does not match the digest.
func (s *spool) verify(blob digest.Digest) error {
	if _, err := io.Copy(s.hash, io.NewSectionReader(s.to, s.hashed, s.length-s.hashed)); err != nil { // bytes from before a restart
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	if fmt.Sprintf("%x", s.hash.Sum(nil)) != blob.Encoded() {
		return fmt.Errorf("blob %s: %w", blob, errDamaged)
	}
	return nil
}

// store stores the content of from if it matches the digest. The caller must close spool.to.
func (c *Cache) store(l store.Link, blob digest.Digest, from io.Reader, room *room) (*spool, error) {
	file, err := c.options.Store.Temporary()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDisk, err)
	}
	s := &spool{to: file.File, room: room, hash: blob.Algorithm().Hash()}
	if _, err = io.Copy(s, from); err == nil {
		err = s.verify(blob)
	}
	if err == nil {
		if err = file.Commit(blob); err == nil {
			c.stored(l, blob, s.length)
			return s, nil
		}
		err = fmt.Errorf("%w: %w", errDisk, err)
	}
	return nil, errors.Join(err, file.Close())
}

// fetch starts the arrival of a blob once the upstream has confirmed that the repository contains
// it. It returns nil if the blob has been stored meanwhile, for example from another replica.
func (c *Cache) fetch(ctx context.Context, l store.Link, blob digest.Digest) (*arrival, error) {
	if file, err := c.open(l, blob); err == nil { // stored since the client looked
		return nil, file.Close()
	}
	if a := c.arrivalOf(blob); a != nil || c.replicate(ctx, l, blob) {
		return a, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	arrived := c.options.Store.Arrived(blob)
	response, err := c.request(ctx, l.Repository, blob, fmt.Sprintf("bytes=%d-", arrived))
	if _, refused := errors.AsType[*upstream.RefusedError](err); refused && arrived > 0 { // perhaps it refuses only ranges
		if response, err = c.request(ctx, l.Repository, blob, ""); err == nil {
			_ = c.drop(blob)
		}
	}
	if err != nil {
		cancel()
		return nil, err
	}
	a, isNew := c.start(blob, mostArrivals, func(running context.Context, a *arrival) error { //nolint:contextcheck // it outlives the request
		context.AfterFunc(running, cancel)
		return (&download{arrival: a, link: l, response: response}).run(running)
	})
	if !isNew {
		cancel()
		_ = response.Body.Close()
	}
	if a == nil {
		err = errUnstored
	}
	return a, err
}

func (c *Cache) request(ctx context.Context, repository string, blob digest.Digest, part string) (*http.Response, error) {
	header := http.Header{}
	if !isWhole(part) {
		header.Set("Range", part)
	}
	return c.options.Upstream.Do(ctx, http.MethodGet, repository, "blobs/"+blob.String(), header)
}

// replicate copies a blob from another replica, and reports whether it succeeded.
func (c *Cache) replicate(ctx context.Context, l store.Link, blob digest.Digest) bool {
	return c.options.Replicas.Get(ctx, l.Repository, "blobs/"+blob.String(), nil, func(response *http.Response) error {
		room, ok := c.reserve(response.ContentLength)
		if !ok {
			return upstream.ErrUnused
		}
		defer room.release()
		s, err := c.store(l, blob, io.LimitReader(response.Body, response.ContentLength), room)
		if err != nil {
			return err
		}
		metrics.Pulled.WithLabelValues("blob").Add(float64(s.length))
		return s.to.Close()
	})
}

// run downloads and stores the blob. It resumes after a broken connection.
func (d *download) run(ctx context.Context) error {
	file, err := d.cache.options.Store.Partial(d.blob)
	d.spool = spool{to: file, room: &room{cache: d.cache}, hash: d.blob.Algorithm().Hash()}
	defer d.room.release()
	if err == nil {
		d.update(func() { d.file = file })
		d.length, err = file.Seek(0, io.SeekEnd)
	}
	if err != nil {
		_ = d.response.Body.Close()
		return d.cache.refuse(d.blob, err)
	}
	if err = d.all(ctx); err == nil {
		return nil
	}
	disk := errors.Is(err, errDisk) || errors.Is(err, syscall.EIO)
	left := d.length
	if disk || errors.Is(err, errDamaged) || left == 0 {
		_ = d.cache.options.Store.DropPartial(d.blob)
		left = 0
	}
	d.cache.index.Left(d.blob, left, d.cache.now())
	if disk {
		return d.cache.refuse(d.blob, err)
	}
	return err
}

// all downloads the missing rest of the file, in several attempts if needed, and stores the blob.
func (d *download) all(ctx context.Context) error {
	for failed := 0; ; {
		before := d.length
		err := d.attempt(ctx)
		if err == nil {
			return d.finish()
		}
		if failed++; d.length-before >= progress {
			failed = 0
		}
		_, refused := errors.AsType[*upstream.RefusedError](err)
		if ctx.Err() == nil && (refused || errors.Is(err, errDisk) || failed == attempts) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause << failed):
		}
	}
}

// attempt requests the rest of the blob and reads it.
func (d *download) attempt(ctx context.Context) (err error) {
	response := d.response
	if d.response = nil; response == nil {
		response, err = d.cache.request(ctx, d.link.Repository, d.blob, fmt.Sprintf("bytes=%d-", d.length))
		refused, isRefused := errors.AsType[*upstream.RefusedError](err)
		switch ok := isRefused && refused.Status == http.StatusRequestedRangeNotSatisfiable; {
		case ok && refused.ContentRange == fmt.Sprintf("bytes */%d", d.length):
			d.update(func() { d.size, d.have = d.length, d.length })
			return nil // nothing is missing
		case ok:
			return d.restart(errors.New("the upstream's blob is shorter than what has already arrived"))
		case err != nil:
			return err
		}
	}
	defer func() { _ = response.Body.Close() }()
	if err := d.accept(response); err != nil {
		return err
	}
	body := io.Reader(response.Body)
	if d.size >= 0 {
		body = io.LimitReader(body, d.size-d.length)
	}
	if _, err := io.CopyBuffer(d, body, make([]byte, buffer)); err != nil {
		return err
	}
	if d.length < d.size {
		return io.ErrUnexpectedEOF
	}
	d.update(func() { d.size = d.length })
	return nil
}

// accept skips what the file already contains, reserves room for the rest, and shows the file to
// clients. If the body does not continue the file, accept empties the file and returns an error.
func (d *download) accept(response *http.Response) error {
	size, text := response.ContentLength, response.Header.Get("Content-Range")
	first, last, whole := int64(0), int64(0), int64(-1)
	n, _ := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &whole)
	isPart := response.StatusCode == http.StatusPartialContent && (d.length > 0 || n >= 2) || n >= 2 && first == d.length
	if !isPart { // the body is the whole blob, even if a part was requested
		if size >= 0 && size < d.length {
			if err := d.restart(nil); err != nil {
				return err
			}
		}
		if _, err := io.CopyN(io.Discard, response.Body, d.length); err != nil {
			return err
		}
	} else {
		if n < 2 || first != d.length || n == 3 && whole <= max(first, last) {
			return d.restart(fmt.Errorf("the upstream sent range %q, want one from %d", text, d.length))
		}
		size = whole
		metrics.Resumed.Inc()
	}
	if d.size >= 0 && size >= 0 && size != d.size {
		return fmt.Errorf("the upstream changed the size of blob %s from %d to %d bytes", d.blob, d.size, size)
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && d.have == 0 {
		d.encoding = encoding
	}
	size = max(size, d.size)
	if missing := size - d.length - d.room.awaited; missing > 0 && !d.room.add(missing) {
		return errNoRoom
	}
	d.update(func() { d.size, d.have, d.hidden = size, d.length, d.encoding != "" })
	return nil
}

// restart empties the file and returns reason. It fails if clients may have read from the file.
func (d *download) restart(reason error) error {
	if d.have > 0 {
		return errors.Join(reason, errors.New("clients have already read bytes that must be dropped"))
	}
	d.hash.Reset()
	d.room.release()
	d.length, d.hashed = 0, 0
	if err := d.to.Truncate(0); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	return reason
}

// Write implements io.Writer. It shows the written bytes to clients.
func (d *download) Write(p []byte) (int, error) {
	metrics.Pulled.WithLabelValues("blob").Add(float64(len(p)))
	n, err := d.spool.Write(p)
	d.update(func() { d.have = d.length })
	return n, err
}

// finish verifies the digest, shows the last byte, and stores the blob.
func (d *download) finish() error {
	if err := d.verify(d.blob); errors.Is(err, errDamaged) && d.hidden {
		return d.decode()
	} else if err != nil {
		return err
	}
	d.update(func() { d.checked = true })
	if err := d.cache.options.Store.Commit(d.blob, d.file); err != nil {
		_ = d.cache.options.Store.DropPartial(d.blob)
		slog.Error("a blob is not stored", "blob", d.blob, "error", err)
		return nil // clients have received it
	}
	d.cache.stored(d.link, d.blob, d.size)
	return nil
}

// decode decodes a file with a Content-Encoding that no client has read, and stores the result.
func (d *download) decode() error {
	defer func() { d.length = 0; _ = d.cache.options.Store.DropPartial(d.blob) }()
	decoded, err := decoder(d.encoding, io.NewSectionReader(d.to, 0, d.length))
	if err != nil {
		return err
	}
	room := &room{cache: d.cache}
	defer room.release()
	s, err := d.cache.store(d.link, d.blob, decoded, room)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	_ = d.file.Close()
	d.update(func() { d.file, d.size, d.have, d.hidden, d.checked = s.to, s.length, s.length, false, true })
	return nil
}

// decoder returns a reader that removes the codings of a Content-Encoding. It supports those that
// containerd accepts.
func decoder(encodings string, from io.Reader) (_ io.Reader, err error) {
	for _, one := range slices.Backward(strings.SplitN(encodings, ",", mostCodings)) {
		switch one = strings.ToLower(strings.TrimSpace(one)); one {
		case "gzip", "x-gzip":
			from, err = gzip.NewReader(bufio.NewReader(from))
		case "deflate":
			from = flate.NewReader(from)
		case "zstd":
			from, err = zstd.NewReader(from, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
		case "identity", "":
		default:
			err = fmt.Errorf("the upstream's Content-Encoding %q is unknown", one)
		}
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", one, err)
		}
	}
	return from, nil
}
