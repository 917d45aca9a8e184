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
	// operation is how long a caller waits for the disk.
	operation = time.Second
	// hanging is how long an operation may run before the disk counts as hanging.
	hanging = 3 * time.Second
	// mostOperations bounds the goroutines that wait for the disk.
	mostOperations = 512
	// beat is the pause between two operations that only show that the disk works.
	beat      = time.Second
	beatFile  = own + "/beat"
	beatBytes = 4096
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
func (s *Store) Works() context.Context {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.works
}

// on runs an operation, and waits at most a second for it. A result that comes later is closed.
func on[T any](d *disk, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	late := time.NewTimer(operation)
	defer late.Stop()
	d.mu.Lock()
	stuck := d.stuck > 0
	d.mu.Unlock()
	if stuck {
		return none, ErrHangs
	}
	select {
	case d.slots <- struct{}{}:
	case <-late.C:
		return none, ErrSlow
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case got := <-done:
		<-d.slots
		return got.value, got.err
	case <-late.C:
	}
	go func() {
		defer func() { <-d.slots }()
		hangs := time.NewTimer(hanging - operation)
		defer hangs.Stop()
		var got result
		select {
		case got = <-done:
		case <-hangs.C:
			d.count(1)
			got = <-done
			d.count(-1)
		}
		if closer, ok := any(got.value).(io.Closer); ok && got.err == nil {
			_ = closer.Close()
		}
	}()
	return none, ErrSlow
}

func (d *disk) count(more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stuck += more; d.stuck > 0 {
		d.hangs(ErrHangs)
	} else {
		d.works, d.hangs = context.WithCancelCause(context.Background())
	}
}

// run is on for an operation without a result.
func (d *disk) run(do func() error) error {
	_, err := on(d, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Watch writes and reads a file every second until ctx ends, so that a hanging disk is known
// without a request. A disk that refuses to write is no disk that hangs: what is stored can be
// served.
func (s *Store) Watch(ctx context.Context) {
	_ = s.disk.run(func() error { return s.write(beatFile, make([]byte, beatBytes), true) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(beat):
		}
		_ = s.disk.run(s.beat)
	}
}

// beat creates a file, and reads one that is not in the page cache.
func (s *Store) beat() error {
	file, err := s.root.Open(beatFile)
	if err == nil {
		_ = unix.Fadvise(int(file.Fd()), 0, beatBytes, unix.FADV_DONTNEED)
		_, err = io.Copy(io.Discard, file)
		err = errors.Join(err, file.Close())
	}
	return errors.Join(err, s.write(own+"/alive", nil, false))
}
