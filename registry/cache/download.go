package cache

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

const (
	// attempts is how often a download asks the upstream again before it fails, unless an attempt
	// has brought progress.
	attempts = 4
	progress = 1 << 20
	pause    = 250 * time.Millisecond
	buffer   = 256 << 10
	// step is how much room is reserved for a blob whose size the upstream does not tell.
	step = 4 << 20
)

// errDisk says that the disk failed, and not the upstream.
var errDisk = errors.New("the disk failed")

// download is the writer of an arrival from the upstream. Only its goroutine uses it.
type download struct {
	*arrival
	link     store.Link
	response *http.Response // that continues the file, or nil
	room     *room
	hash     hash.Hash
	hashed   int64 // of the bytes in the file
	encoding string
}

// fetch starts the arrival of a blob when the upstream has answered that it has the blob in the
// repository. It returns nil if the blob is stored, because another replica had it.
func (c *Cache) fetch(ctx context.Context, l store.Link, blob digest.Digest) (*arrival, error) {
	if file, err := c.open(l, blob); err == nil { // since the client looked for it
		return nil, file.Close()
	}
	c.mu.Lock()
	a := c.arrivals[blob]
	c.mu.Unlock()
	if a != nil || c.replicate(ctx, l, blob) {
		return a, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	response, err := c.request(ctx, l, blob, c.options.Store.Arrived(blob))
	if refused, ok := errors.AsType[*upstream.RefusedError](err); ok && refused.Status == http.StatusRequestedRangeNotSatisfiable {
		_ = c.drop(blob)
		response, err = c.request(ctx, l, blob, 0)
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	d := &download{link: l, response: response, hash: blob.Algorithm().Hash()}
	a, isNew := c.start(blob, mostArrivals, func(running context.Context, a *arrival) error { //nolint:contextcheck // it outlives the request
		d.arrival = a
		stop := context.AfterFunc(running, func() { cancel(context.Cause(running)) })
		defer stop()
		defer cancel(nil)
		return d.run(running, ctx)
	})
	if !isNew {
		cancel(nil)
		_ = response.Body.Close()
	}
	if a == nil {
		return nil, errUnstored
	}
	return a, nil
}

func (c *Cache) request(ctx context.Context, l store.Link, blob digest.Digest, from int64) (*http.Response, error) {
	header := http.Header{}
	if from > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	return c.options.Upstream.Do(ctx, http.MethodGet, l.Repository, "blobs/"+blob.String(), header)
}

// replicate stores a blob that another replica has, and reports whether one has it.
func (c *Cache) replicate(ctx context.Context, l store.Link, blob digest.Digest) bool {
	return c.options.Replicas.Get(ctx, l.Repository, "blobs/"+blob.String(), nil, func(response *http.Response) error {
		room, ok := c.reserve(response.ContentLength)
		if !ok {
			return upstream.ErrUnused
		}
		defer room.release()
		file, err := c.options.Store.Temporary()
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		verifier := blob.Verifier()
		n, err := io.Copy(io.MultiWriter(file, verifier), io.LimitReader(response.Body, response.ContentLength))
		if err == nil && !verifier.Verified() {
			err = errDamaged
		}
		if err != nil {
			return err
		}
		metrics.Pulled.WithLabelValues("blob").Add(float64(n))
		if err := file.Commit(blob); err != nil {
			return err
		}
		c.stored(l, blob, n)
		return nil
	})
}

// run downloads the blob and stores it. Requests have the context of asking.
func (d *download) run(ctx, asking context.Context) error {
	defer func() {
		if d.response != nil {
			_ = d.response.Body.Close()
		}
	}()
	file, err := d.cache.options.Store.Partial(d.blob)
	if err != nil {
		return d.cache.refuse(d.blob, err)
	}
	have, err := file.Seek(0, io.SeekEnd)
	d.mu.Lock()
	d.file, d.have = file, 0
	d.mu.Unlock()
	if err != nil {
		return d.cache.refuse(d.blob, err)
	}
	d.room = &room{cache: d.cache}
	defer d.room.release()
	if err = d.all(ctx, asking, have); err == nil {
		return nil
	}
	damaged, disk := errors.Is(err, errDamaged), errors.Is(err, errDisk) || errors.Is(err, syscall.EIO)
	if arrived := d.cache.options.Store.Arrived(d.blob); arrived > 0 && !damaged && !disk {
		d.cache.index.Left(d.blob, arrived, d.cache.now())
	} else {
		_ = d.cache.options.Store.DropPartial(d.blob)
		d.cache.index.Left(d.blob, 0, d.cache.now())
	}
	if disk {
		return d.cache.refuse(d.blob, err)
	}
	return err
}

// all downloads what the file, with its first bytes, does not have. It asks again after a break.
func (d *download) all(ctx, asking context.Context, have int64) error {
	for failed := 0; ; {
		before := have
		err := d.attempt(asking, &have)
		if err == nil {
			return d.finish()
		}
		_, refused := errors.AsType[*upstream.RefusedError](err)
		if failed++; have-before >= progress {
			failed = 0
		}
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case refused, errors.Is(err, errDisk), failed == attempts:
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause << failed):
		}
	}
}

// attempt asks for the rest of the blob and reads it.
func (d *download) attempt(ctx context.Context, have *int64) (err error) {
	response := d.response
	if d.response = nil; response == nil {
		response, err = d.cache.request(ctx, d.link, d.blob, *have)
		refused, ok := errors.AsType[*upstream.RefusedError](err)
		switch {
		case ok && refused.Status == http.StatusRequestedRangeNotSatisfiable && refused.ContentRange == fmt.Sprintf("bytes */%d", *have):
			d.update(func() { d.size, d.have = *have, *have })
			return nil // all has arrived before
		case ok && refused.Status == http.StatusRequestedRangeNotSatisfiable:
			return d.restart(have, errors.New("the upstream's blob is shorter than what has arrived"))
		case err != nil:
			return err
		}
	}
	defer func() { _ = response.Body.Close() }()
	size, err := d.accept(response, have)
	if err != nil {
		return err
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && d.have == 0 {
		d.encoding = encoding
	}
	if err := d.place(size, *have); err != nil {
		return err
	}
	chunk := make([]byte, buffer)
	for d.size < 0 || *have < d.size {
		n, err := response.Body.Read(chunk)
		if d.size >= 0 {
			n = int(min(int64(n), d.size-*have))
		}
		metrics.Pulled.WithLabelValues("blob").Add(float64(n))
		if err := d.write(chunk[:n], have); err != nil {
			return err
		}
		switch {
		case err == io.EOF && d.size < 0:
			d.update(func() { d.size = *have })
		case err == io.EOF && *have < d.size:
			return io.ErrUnexpectedEOF
		case err != nil && err != io.EOF:
			return err
		}
	}
	return nil
}

// accept checks that the body continues the file, and returns the size of the blob, or -1.
func (d *download) accept(response *http.Response, have *int64) (int64, error) {
	if response.StatusCode == http.StatusOK { // an upstream that does not know ranges, if one was asked for
		if response.ContentLength >= 0 && response.ContentLength < *have {
			if err := d.restart(have, nil); err != nil {
				return 0, err
			}
		}
		_, err := io.CopyN(io.Discard, response.Body, *have)
		return response.ContentLength, err
	}
	var first, last, size int64
	text := response.Header.Get("Content-Range")
	if n, _ := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &size); n < 2 || first != *have || n == 3 && size <= max(first, last) {
		return 0, d.restart(have, fmt.Errorf("the upstream sent range %q, want one from %d", text, *have))
	} else if n == 2 {
		size = -1
	}
	metrics.Resumed.Inc()
	return size, nil
}

// place makes room for the rest of the blob, and shows what the file has.
func (d *download) place(size, have int64) error {
	if d.size >= 0 && size >= 0 && size != d.size {
		return fmt.Errorf("the upstream says that blob %s has %d bytes, and said %d before", d.blob, size, d.size)
	}
	size = max(size, d.size)
	if missing := size - have - d.room.size; missing > 0 && !d.room.add(missing) {
		return fmt.Errorf("%w: it has no room", errDisk)
	}
	d.update(func() { d.size, d.have, d.hidden = size, have, d.encoding != "" })
	return nil
}

// restart drops what has arrived, unless clients have read it. It returns the reason, or why not.
func (d *download) restart(have *int64, reason error) error {
	if d.have > 0 {
		return errors.Join(reason, errors.New("clients have read what must be dropped"))
	}
	d.hash.Reset()
	*have, d.hashed = 0, 0
	if err := d.file.Truncate(0); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	return reason
}

// write adds bytes to the file, and shows them.
func (d *download) write(p []byte, have *int64) error {
	if d.size < 0 && *have+int64(len(p)) > d.room.size && !d.room.step() {
		return fmt.Errorf("%w: it has no room", errDisk)
	}
	if _, err := d.file.Write(p); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	d.room.wrote(int64(len(p)))
	if d.hashed == *have {
		_, _ = d.hash.Write(p)
		d.hashed += int64(len(p))
	}
	*have += int64(len(p))
	d.update(func() { d.have = *have })
	return nil
}

// finish checks the digest, shows the last byte, and makes the file a stored blob.
func (d *download) finish() error {
	n, err := io.Copy(d.hash, io.NewSectionReader(d.file, d.hashed, d.have-d.hashed)) // from before a restart
	if d.hashed += n; err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	if fmt.Sprintf("%x", d.hash.Sum(nil)) != d.blob.Encoded() {
		if d.hidden {
			return d.decode()
		}
		return fmt.Errorf("blob %s: %w", d.blob, errDamaged)
	}
	d.update(func() { d.checked = true })
	if err := d.cache.options.Store.Commit(d.blob, d.file); err != nil {
		_ = d.cache.options.Store.DropPartial(d.blob)
		slog.Error("a blob is not stored", "blob", d.blob, "error", err)
		return nil // clients have it
	}
	d.cache.stored(d.link, d.blob, d.size)
	return nil
}
