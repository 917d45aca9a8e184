package fetch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
)

// Flight is a blob on its way from the upstream.
type Flight struct {
	fetcher    *Fetcher
	repository string
	blob       digest.Digest
	cancel     context.CancelCauseFunc

	begun chan struct{} // closed when clients can read the first bytes
	over  chan struct{} // closed when nothing is written or removed any more

	mu         sync.Mutex
	changed    *sync.Cond
	size       int64 // -1 until it is known
	shown      int64 // how many bytes clients may read
	inFile     int64 // how many of the first bytes the file has
	unreadable bool  // the disk failed to read the file
	abandoned  bool
	memory     *memory
	err        error
	clients    int
	readers    map[*reader]struct{} // of clients that read
	leaving    *time.Timer          // ends a flight without clients
}

func newFlight(f *Fetcher, repository string, blob digest.Digest, cancel context.CancelCauseFunc) *Flight {
	flight := &Flight{
		fetcher: f, repository: repository, blob: blob, cancel: cancel, clients: 1, size: -1,
		begun: make(chan struct{}), over: make(chan struct{}), readers: map[*reader]struct{}{},
	}
	flight.changed = sync.NewCond(&flight.mu)
	flight.leaving = time.AfterFunc(abandoned, flight.abandon)
	flight.leaving.Stop()
	return flight
}

// Size returns the size of the blob.
func (f *Flight) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// enter adds a client, and returns false if the flight cannot serve the whole blob any more.
func (f *Flight) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.abandoned || f.unreadable || f.memory != nil && f.memory.begin > f.inFile {
		return false
	}
	f.clients++
	f.leaving.Stop()
	return true
}

// hasPassed reports whether the flight goes on, but memory has no longer the first bytes.
func (f *Flight) hasPassed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err == nil && f.memory != nil && f.memory.begin > f.inFile
}

// abandon ends a flight for which no client waits.
func (f *Flight) abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.abandoned = f.clients == 0; f.abandoned {
		f.cancel(errAbandoned)
	}
}

// Arrived returns how many bytes clients can read now.
func (f *Flight) Arrived() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown
}

// Leave is the end of a client's part. A flight that stays without clients ends after a while.
func (f *Flight) Leave() {
	f.update(func() {
		if f.clients--; f.clients == 0 {
			f.leaving.Reset(abandoned)
		}
	})
}

// Copy copies the bytes from offset up to end to a client as they arrive. It ends with the error of
// the flight, of w or of ctx.
func (f *Flight) Copy(ctx context.Context, w io.Writer, offset, end int64) error {
	defer context.AfterFunc(ctx, f.wake)()
	r := &reader{offset: offset}
	f.mu.Lock()
	f.readers[r] = struct{}{}
	f.mu.Unlock()
	defer f.done(r)
	for r.offset < end {
		chunk, there, err := f.next(ctx, r)
		if err != nil {
			return err
		}
		n := min(there, end) - r.offset
		if chunk != nil {
			_, err = w.Write(chunk[:n])
		} else {
			n, err = f.copyFile(w, r, n)
		}
		if err != nil {
			return err
		}
		f.update(func() { r.offset += n })
	}
	return nil
}

// reader is a client's place in a flight.
type reader struct {
	offset int64
	file   *os.File
}

// copyFile copies from a file of the reader's own, so that the kernel can send it without a copy.
func (f *Flight) copyFile(w io.Writer, r *reader, n int64) (_ int64, err error) {
	defer func() {
		if errors.Is(err, syscall.EIO) {
			f.update(func() { f.unreadable = true })
			f.fetcher.unreadable.Store(time.Now().UnixNano())
		}
	}()
	if r.file == nil {
		if r.file, err = f.fetcher.Store.OpenPartial(f.blob); err != nil {
			return 0, cmp.Or(f.failure(), err) // the file of damaged content is removed
		}
		if _, err := r.file.Seek(r.offset, io.SeekStart); err != nil {
			return 0, err
		}
	}
	return io.CopyN(w, r.file, n)
}

// next waits for bytes at the reader's offset. It returns those in memory, and where they end.
func (f *Flight) next(ctx context.Context, r *reader) (chunk []byte, end int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.shown <= r.offset {
		if f.err != nil {
			return nil, 0, f.err
		}
		if err := context.Cause(ctx); err != nil {
			return nil, 0, err
		}
		f.changed.Wait()
	}
	if r.offset < f.inFile {
		return nil, min(f.shown, f.inFile), nil
	}
	return f.memory.at(r.offset, f.shown)
}

func (f *Flight) done(r *reader) {
	if r.file != nil {
		_ = r.file.Close()
	}
	f.update(func() { delete(f.readers, r) })
}

// update changes the flight, and wakes all who wait for that.
func (f *Flight) update(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.changed.Broadcast()
}

func (f *Flight) wake() { f.update(func() {}) }

// show lets clients read up to shown. inFile is how much of it the file has.
func (f *Flight) show(size, shown, inFile int64) {
	f.update(func() {
		f.size, f.shown, f.inFile = size, shown, inFile
		if (shown > 0 || shown == size) && !f.hasBegun() {
			close(f.begun)
		}
	})
}

func (f *Flight) hasBegun() bool {
	select {
	case <-f.begun:
		return true
	default:
		return false
	}
}

// failure returns the error of a flight that has ended.
func (f *Flight) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// isUnreadable reports whether the disk failed to read what has arrived.
func (f *Flight) isUnreadable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unreadable
}
