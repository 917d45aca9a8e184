package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	operation      = time.Second     // for which a caller waits for the disk
	hanging        = 3 * time.Second // for which an operation may run before the disk counts as hanging
	mostOperations = 512             // bounds the goroutines that wait for the disk
	beat           = time.Second     // the pause between two operations that only show that the disk works
	beatFile       = own + "/beat"
	beatBytes      = 4096
	writeOut       = unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
)

// ErrSlow says that the disk did not answer in time.
var ErrSlow = fmt.Errorf("the disk did not answer within %s", operation)

// ErrHangs is the cause of the end of a context of Works.
var ErrHangs = fmt.Errorf("the disk has not answered for %s", hanging)

// IsSlow reports whether an error says that the disk did not answer.
func IsSlow(err error) bool { return errors.Is(err, ErrSlow) || errors.Is(err, ErrHangs) }

// disk bounds the wait for operations. It works, or hangs while one of them takes longer than
// hanging; then other operations fail at once.
type disk struct {
	slots chan struct{}

	mu    sync.Mutex
	stuck int // operations that take longer than hanging
	works context.Context
	hangs context.CancelCauseFunc
}

func newDisk() *disk {
	d := &disk{slots: make(chan struct{}, mostOperations)}
	d.works, d.hangs = context.WithCancelCause(context.Background())
	return d
}

// Works returns a context that ends when the disk hangs.
func (d *disk) Works() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.works
}

// on runs an operation, and waits at most a second for it. A result that comes later is closed. An
// error says what the operation was doing, and with what.
func on[T any](d *disk, doing string, what any, do func() (T, error)) (T, error) {
	failed := func(err error) (none T, _ error) { return none, fmt.Errorf("%s %v: %w", doing, what, err) }
	if d.Works().Err() != nil {
		return failed(ErrHangs)
	}
	done, gone, late := make(chan struct{}), make(chan struct{}), time.After(operation)
	defer close(gone)
	select {
	case d.slots <- struct{}{}:
	case <-late:
		return failed(ErrSlow)
	}
	var value T
	var err error
	go func() {
		defer func() { <-d.slots }()
		hangs := time.AfterFunc(hanging, func() { d.count(1) })
		value, err = do()
		if !hangs.Stop() {
			d.count(-1)
		}
		select {
		case done <- struct{}{}:
		case <-gone:
			if closer, ok := any(value).(io.Closer); ok && err == nil {
				_ = closer.Close()
			}
		}
	}()
	select {
	case <-done:
		if err != nil {
			return failed(err)
		}
		return value, nil
	case <-late:
		return failed(ErrSlow)
	}
}

// count adds to the operations that take too long. One that ends just then may be subtracted first.
func (d *disk) count(more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stuck += more; d.stuck > 0 {
		d.hangs(ErrHangs)
	} else if d.works.Err() != nil {
		d.works, d.hangs = context.WithCancelCause(context.Background())
	}
}

// run is on for an operation without a result.
func (d *disk) run(doing string, what any, do func() error) error {
	_, err := on(d, doing, what, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Watch writes and reads a file every second until ctx ends, so that a hanging disk is known
// without a request. A disk that refuses to write is no disk that hangs: what is stored can be
// served.
func (s *Store) Watch(ctx context.Context) {
	_ = s.run("writing", beatFile, func() error { return s.write(beatFile, make([]byte, beatBytes)) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(beat):
		}
		_ = s.run("reading", beatFile, s.beat)
	}
}

// beat creates a file, and reads one that is not in the page cache.
func (s *Store) beat() error {
	file, err := s.root.Open(beatFile)
	if err == nil {
		_ = unix.SyncFileRange(int(file.Fd()), 0, beatBytes, writeOut) // what is not written out stays in the cache
		_ = unix.Fadvise(int(file.Fd()), 0, beatBytes, unix.FADV_DONTNEED)
		_, err = io.Copy(io.Discard, file)
		err = errors.Join(err, file.Close())
	}
	return errors.Join(err, s.write(own+"/alive", nil))
}
