package fetch

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

const (
	// attempts is how often a flight asks the upstream again without a new byte before it fails.
	attempts = 3
	// held is the size up to which a blob from a replica is checked before clients see any of it.
	held       = 32 << 20
	pause      = 250 * time.Millisecond
	bufferSize = 256 << 10
)

var errAbandoned = errors.New("no client waits for the blob any more")

// writer is the state that is private to the goroutine of a flight. It needs no lock.
type writer struct {
	*Flight
	partial *os.File // or nil, if the volume does not take the blob
	room    Room     // or nil
	hash    hash.Hash
	have    int64
	hashed  int64   // less than have after a restart: what is there is hashed at the end
	replica Replica // that has sent something, or nil
}

func (f *Flight) run(ctx context.Context) {
	w := &writer{Flight: f, hash: f.blob.Algorithm().Hash()}
	if w.landed(ctx) {
		close(w.over)
		return
	}
	if err := w.resume(); err != nil {
		slog.Warn("the volume does not take a blob", "blob", w.blob, "error", err)
	}
	err := w.fetch(ctx)
	stored := err == nil && w.memory == nil && !w.isUnreadable() && w.store()
	w.leaveRoom()
	w.update(func() { w.err = err })
	w.leave(stored)
	close(w.over) // a flight that follows may write the file now
}

func (w *writer) leaveRoom() {
	if w.room != nil {
		w.room.Release()
		w.room = nil
	}
}

// leave keeps what has arrived of a blob for the next flight, unless it is of no use.
func (w *writer) leave(stored bool) {
	if w.partial == nil {
		return
	}
	_, damaged := errors.AsType[*DamagedError](w.err)
	useless := damaged || w.isUnreadable() || errors.Is(w.err, syscall.EIO)
	if !stored && w.memory == nil && w.have > 0 && !useless {
		w.fetcher.Volume.Left(w.blob, w.have)
	} else if !stored {
		_ = w.fetcher.Store.DropPartial(w.blob)
	}
	_ = w.partial.Close()
}

// landed reports whether an earlier flight has stored the blob since the client looked for it.
func (w *writer) landed(ctx context.Context) bool {
	file, size, err := w.fetcher.Store.Open(ctx, w.blob)
	if err != nil {
		return false
	}
	_ = file.Close()
	w.show(size, size, size)
	return true
}

// final reports whether another attempt would fail, too.
func final(err error) bool {
	status, refused := errors.AsType[*upstream.StatusError](err)
	_, away := errors.AsType[*upstream.AwayError](err)
	_, damaged := errors.AsType[*DamagedError](err)
	return refused && !status.Away() || away || damaged
}

// withoutReplica drops what a replica has sent, unless clients have read it. The replica is not
// asked again soon.
func (w *writer) withoutReplica() error {
	w.replica.Wrong()
	w.replica = nil
	if err := w.restart(); err != nil {
		return err
	}
	w.leaveRoom()
	w.update(func() { w.size, w.inFile, w.memory = -1, 0, nil })
	return nil
}

// resume continues with what the volume has of the blob.
func (w *writer) resume() (err error) {
	if since := time.Since(time.Unix(0, w.fetcher.unreadable.Load())); since < withoutDisk {
		return fmt.Errorf("the disk failed to read a blob %s ago", since.Round(time.Second))
	}
	if w.partial, err = w.fetcher.Store.Partial(w.blob); err != nil {
		return err
	}
	if w.have, err = w.partial.Seek(0, io.SeekEnd); err != nil {
		return errors.Join(err, w.restart())
	}
	return nil
}

// catchUp hashes what the file has and a restart has left out.
func (w *writer) catchUp() error {
	n, err := io.Copy(w.hash, io.NewSectionReader(w.partial, w.hashed, w.inFile-w.hashed))
	w.hashed += n
	return err
}

// restart drops what has arrived.
func (w *writer) restart() error {
	if w.shown > 0 {
		return errors.New("clients have read what must be dropped")
	}
	w.hash.Reset()
	w.have, w.hashed = 0, 0
	if w.partial == nil {
		return nil
	}
	_, err := w.partial.Seek(0, io.SeekStart)
	return errors.Join(err, w.partial.Truncate(0))
}

// fetch downloads the rest of the blob. It asks again after a break.
func (w *writer) fetch(ctx context.Context) error {
	for failed := 0; ; {
		before := w.have
		err := w.attempt(ctx)
		if err == nil {
			err = w.verify()
		}
		switch failed++; {
		case err == nil, context.Cause(ctx) != nil:
			return err
		case w.replica != nil && w.withoutReplica() == nil:
			failed = 0
			continue
		case final(err):
			return err
		case w.have > before:
			failed = 0
			continue
		case failed == attempts:
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
func (w *writer) attempt(ctx context.Context) error {
	header := http.Header{}
	if w.have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", w.have))
	}
	response, err := w.fetcher.Upstream.Do(ctx, http.MethodGet, w.repository, "blobs/"+w.blob.String(), header)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if replica, ok := response.Body.(Replica); ok {
		w.replica = replica
	}
	size, err := w.accept(response)
	if err != nil {
		return err
	}
	if w.size >= 0 && size != w.size {
		return fmt.Errorf("the upstream says that blob %s has %d bytes, and said %d before", w.blob, size, w.size)
	}
	if w.size < 0 {
		if err := w.place(size); err != nil {
			return err
		}
	}
	buffer := make([]byte, bufferSize)
	for w.have < w.size {
		n, err := response.Body.Read(buffer[:min(bufferSize, w.size-w.have)])
		metrics.Pulled.WithLabelValues("blob").Add(float64(n))
		if err := w.write(ctx, buffer[:n]); err != nil {
			return err
		}
		if err == io.EOF && w.have < w.size {
			return io.ErrUnexpectedEOF
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// accept checks that the body continues where the blob ends, and returns the size of the blob.
func (w *writer) accept(response *http.Response) (int64, error) {
	switch response.StatusCode {
	case http.StatusOK:
		if response.ContentLength < 0 {
			return 0, errors.New("the upstream does not say how large the blob is")
		}
		_, err := io.CopyN(io.Discard, response.Body, w.have) // an upstream that does not know ranges
		return response.ContentLength, err
	case http.StatusPartialContent:
		var first, last, size int64
		text := response.Header.Get("Content-Range")
		if n, _ := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &size); n != 3 || first != w.have {
			return 0, errors.Join(fmt.Errorf("the upstream sent range %q, want one from %d", text, w.have), w.restart())
		}
		metrics.Resumed.Inc()
		return size, nil
	case http.StatusRequestedRangeNotSatisfiable:
		if response.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", w.have) {
			return w.have, nil // all has arrived before
		}
		return 0, errors.Join(errors.New("the upstream's blob is shorter than what has arrived"), w.restart())
	default:
		return 0, &upstream.StatusError{Status: response.StatusCode}
	}
}

// place chooses where the rest of the blob goes.
func (w *writer) place(size int64) error {
	w.show(size, min(w.have, max(size-1, 0)), w.have)
	if w.partial == nil {
		return w.passThrough(errors.New("its file cannot be written"))
	}
	room, ok := w.fetcher.Volume.Reserve(size - w.have)
	if !ok {
		return w.passThrough(errors.New("the volume has no room"))
	}
	w.room = room
	return nil
}

// passThrough lets the rest of the blob pass through memory.
func (w *writer) passThrough(why error) error {
	slog.Warn("a blob is served without being stored", "blob", w.blob, "error", why)
	metrics.Unstored.WithLabelValues("blob").Inc()
	w.leaveRoom()
	w.update(func() { w.memory = &memory{start: w.have, begin: w.have, end: w.have} })
	if w.hashed < w.have {
		return w.catchUp()
	}
	return nil
}

// write stores bytes and shows them to clients, but the last byte only after the digest is checked.
func (w *writer) write(ctx context.Context, p []byte) error {
	inFile := w.inFile
	if w.memory == nil {
		if _, err := w.partial.Write(p); err != nil {
			if err := w.passThrough(err); err != nil { // clients read from here what the file does not have
				return err
			}
		} else {
			inFile += int64(len(p))
			w.room.Wrote(int64(len(p)))
		}
	}
	if w.memory != nil {
		if err := w.remember(ctx, p); err != nil {
			return err
		}
	}
	if w.hashed == w.have {
		_, _ = w.hash.Write(p)
		w.hashed += int64(len(p))
	}
	w.have += int64(len(p))
	shown := min(w.have, w.size-1)
	if w.replica != nil && w.size <= held && w.memory == nil {
		shown = w.shown
	}
	w.show(w.size, shown, inFile)
	return nil
}

// verify checks the digest and shows the last byte.
func (w *writer) verify() error {
	if w.hashed < w.have {
		if err := w.catchUp(); err != nil {
			return err
		}
	}
	if sum := fmt.Sprintf("%x", w.hash.Sum(nil)); sum != w.blob.Encoded() {
		return &DamagedError{w.blob.String()}
	}
	w.show(w.size, w.size, w.inFile)
	return nil
}

// store makes the file a stored blob.
func (w *writer) store() bool {
	if err := w.fetcher.Store.Commit(w.blob, w.partial); err != nil {
		slog.Error("a blob is not stored", "blob", w.blob, "error", err)
		return false
	}
	w.fetcher.Volume.Stored(w.repository, w.blob, w.size)
	return true
}

// DamagedError says that what the upstream sent has another digest.
type DamagedError struct{ Blob string }

// Error implements error.
func (e *DamagedError) Error() string {
	return "the upstream sent another content than that of " + e.Blob
}
