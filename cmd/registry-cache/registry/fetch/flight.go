package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// flight is one fetch of a blob from the upstream, and what its clients may know of it.
type flight struct {
	cancel     context.CancelFunc
	repository string        // that of the first client, into which distribution stores the blob
	expected   int64         // the size as the upstream has told it before
	buffers    *sync.Pool    // of *buffer
	patience   time.Duration // the group's
	clients    int           // those who have not left; guarded by the group, as users
	users      int           // those who may read the file: clients, those who wait for the end, and the fetch
	over       chan struct{} // closed when the fetch has ended

	mu       sync.Mutex
	file     file   // the growing file in the store; nil before the fetch has created it
	upload   string // the folder of the file
	written  int64
	tail     []byte      // the last of what was written, which may not be in the file yet
	header   http.Header // of the answer; nil before the upstream has told the size
	size     int64       // with header
	done     bool
	err      error         // why the fetch failed, with done
	changed  chan struct{} // closed and replaced with every change
	paced    int64         // how much was written when it last had got on by a pace
	progress time.Time     // when that was
	slow     bool          // that pace took longer than patience
}

// file is what a storage driver's reader of a file of the operating system can do besides.
type file interface {
	io.ReaderAt
	io.Closer
}

func (g *Group) newFlight(cancel context.CancelFunc, repository string, expected int64) *flight {
	return &flight{
		cancel: cancel, repository: repository, expected: expected, buffers: &g.buffers, patience: g.patience,
		over: make(chan struct{}), changed: make(chan struct{}), progress: time.Now(),
	}
}

// update changes the flight, and wakes all who wait for a change.
func (f *flight) update(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// buffered is how much of what is written distribution's file writer keeps from the file: the default of bufio. Its clients
// need not wait for the end, where it writes everything to the disk.
const buffered = 4096

// grow tells the clients of what was written. p is the caller's.
func (f *flight) grow(p []byte) {
	f.update(func() {
		f.written += int64(len(p))
		last := p[max(0, len(p)-buffered):]
		before := f.tail[max(0, len(f.tail)+len(last)-buffered):]
		f.tail = append(append(make([]byte, 0, buffered), before...), last...)
		if f.written-f.paced >= pace {
			now := time.Now()
			f.slow = now.Sub(f.progress) > f.patience
			f.paced, f.progress = f.written, now
		}
	})
}

func (f *flight) end(err error) {
	f.update(func() { f.done, f.err = true, err })
	close(f.over)
}

// fetched says whether the upstream is needed no more: what is left is to put the blob into its place.
func (f *flight) fetched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done || f.header != nil && f.written >= f.size
}

// stalled says whether the upstream sends nothing, or next to nothing.
func (f *flight) stalled() bool {
	now := f.look()
	return !f.fetched() && (now.slow || time.Since(now.progress) > f.patience)
}

// close closes the file. Nobody may use the flight afterwards.
func (f *flight) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		_ = f.file.Close()
	}
}

// view is the flight at one moment.
type view struct {
	file     file
	upload   string
	progress time.Time
	slow     bool
	written  int64
	tail     []byte
	header   http.Header
	size     int64
	done     bool
	err      error
	changed  <-chan struct{}
}

func (f *flight) look() view {
	f.mu.Lock()
	defer f.mu.Unlock()
	return view{f.file, f.upload, f.progress, f.slow, f.written, f.tail, f.header, f.size, f.done, f.err, f.changed}
}

// read reads what there is at the offset; nothing is no error.
func (v view) read(p []byte, offset int64) (int, error) {
	n, err := v.file.ReadAt(p, offset)
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if inTail := int64(len(v.tail)) - (v.written - offset); err == nil && offset < v.written && inTail >= 0 {
		n = copy(p, v.tail[inTail:])
	}
	return n, err
}

// answer waits until the size of the blob is known, or the fetch has ended.
func (f *flight) answer(ctx context.Context) (view, error) {
	for {
		now := f.look()
		if now.done || now.header != nil {
			return now, nil
		}
		select {
		case <-now.changed:
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}

// errCut says that a fetch ended before the blob did.
var errCut = errors.New("the fetch from the upstream ended too early")

// errStore says that it is the store which has failed, not the upstream.
var errStore = errors.New("what is fetched cannot be stored")

// send writes the blob from the offset on, as it comes, and returns how far it has got. The error is errStore where the upstream may
// still have the rest.
func (f *flight) send(ctx context.Context, w http.ResponseWriter, offset int64) (int64, error) {
	for {
		now := f.look() // before the file is read: what is written after it changes the flight again
		if offset >= now.size {
			return offset, nil
		}
		n, err := f.pass(w, now, offset)
		offset += int64(n)
		switch {
		case err != nil:
			return offset, err
		case n > 0:
			continue
		case now.done && now.err != nil:
			return offset, fmt.Errorf("%w: %w", errCut, now.err)
		case now.done:
			return offset, errCut
		}
		_ = http.NewResponseController(w).Flush() // the upstream is slower than the client, which shall see that it goes on
		select {
		case <-now.changed:
		case <-ctx.Done():
			return offset, context.Cause(ctx)
		}
	}
}

// buffer is what one client is sent at once.
type buffer [64 << 10]byte

// pass writes a part of what there is at the offset. Who waits has no buffer.
func (f *flight) pass(w io.Writer, now view, offset int64) (int, error) {
	part, _ := f.buffers.Get().(*buffer) // the pool has nothing else
	n, err := now.read(part[:min(int64(len(part)), now.size-offset)], offset)
	switch {
	case err != nil:
		err = ofStore(err)
	case n > 0:
		if n, err = w.Write(part[:n]); err != nil {
			return n, err // HTTP/2 may still read the part of a stream that was reset, so nobody else gets it
		}
	}
	f.buffers.Put(part)
	return n, err
}
