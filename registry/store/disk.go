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
	operation      = time.Second     // how long a caller waits for an operation
	hanging        = 3 * time.Second // how long an operation may take before the disk counts as hanging
	mostOperations = 512             // how many operations may run at the same time
	beat           = time.Second     // the pause between two tests of the disk
	beatFile       = own + "/beat"
	beatBytes      = 4096
	writeOut       = unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
)

// ErrSlow is returned when the disk did not answer in time.
var ErrSlow = fmt.Errorf("the disk did not answer within %s", operation)

// ErrHangs is returned while the disk hangs, and is the cause when the context of Works is
// canceled.
var ErrHangs = fmt.Errorf("the disk has not answered for %s", hanging)

// IsSlow reports whether an error means that the disk did not answer in time.
func IsSlow(err error) bool { return errors.Is(err, ErrSlow) || errors.Is(err, ErrHangs) }

// disk limits how long callers wait for an operation. When an operation has taken longer than the
// constant hanging, all others fail at once until it ends.
type disk struct {
	slots chan struct{}

	mu    sync.Mutex
	stuck int // the number of operations that take longer than hanging
	works context.Context
	hangs context.CancelCauseFunc
}

func newDisk() *disk {
	d := &disk{slots: make(chan struct{}, mostOperations)}
	d.works, d.hangs = context.WithCancelCause(context.Background())
	return d
}

// Works returns a context that is canceled when the disk hangs.
func (d *disk) Works() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.works
}

// on runs an operation, and waits for it for at most a second. If the result arrives later, on
// closes it. Errors of on begin with verb and what.
func on[T any](d *disk, verb string, what any, do func() (T, error)) (T, error) {
	failed := func(err error) (none T, _ error) { return none, fmt.Errorf("%s %v: %w", verb, what, err) }
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

// count changes the number of stuck operations by 1 or -1. For one operation, -1 may come first.
func (d *disk) count(more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stuck += more; d.stuck > 0 {
		d.hangs(ErrHangs)
	} else if d.works.Err() != nil {
		d.works, d.hangs = context.WithCancelCause(context.Background())
	}
}

// run calls on for an operation without a result.
func (d *disk) run(verb string, what any, do func() error) error {
	_, err := on(d, verb, what, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Watch reads one file and writes another every second, until ctx is done. So a hanging disk is
// detected even if no request arrives. A disk that refuses writes does not count as hanging: stored
// content can be served.
func (s *Store) Watch(ctx context.Context) {
	_ = s.run("write", beatFile, func() error { return s.write(beatFile, make([]byte, beatBytes)) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(beat):
		}
		_ = s.run("read", beatFile, s.beat)
	}
}

// beat reads a file from the disk, not from the page cache, and then writes another one.
func (s *Store) beat() error {
	file, err := s.root.Open(beatFile)
	if err == nil {
		_ = unix.SyncFileRange(int(file.Fd()), 0, beatBytes, writeOut) // dirty pages would stay in the page cache
		_ = unix.Fadvise(int(file.Fd()), 0, beatBytes, unix.FADV_DONTNEED)
		_, err = io.Copy(io.Discard, file)
		err = errors.Join(err, file.Close())
	}
	return errors.Join(err, s.write(own+"/alive", nil))
}
