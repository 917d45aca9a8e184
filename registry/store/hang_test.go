package store

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// result is the result of an operation.
type result struct{ closed atomic.Bool }

// Close implements io.Closer.
func (r *result) Close() error { r.closed.Store(true); return nil }

// TestHangingDisk checks that a caller waits at most a second for an operation that does not
// return. After three seconds callers do not wait at all. The disk works again when the operation
// returns.
func TestHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{disk: newDisk()}
		stuck, late, start := make(chan struct{}), &result{}, time.Now()
		_, err := on(s.disk, "test", "x", func() (*result, error) { <-stuck; return late, nil })
		if took := time.Since(start); !errors.Is(err, ErrSlow) || took != time.Second {
			t.Errorf("%v after %s", err, took)
		}
		works := s.Works()
		<-time.After(2*time.Second - 1)
		if err := s.disk.run("test", "x", func() error { return nil }); err != nil || works.Err() != nil {
			t.Errorf("the disk hangs before three seconds are over: %v", err)
		}
		<-time.After(1)
		synctest.Wait()
		if cause := context.Cause(works); !errors.Is(cause, ErrHangs) {
			t.Errorf("the disk works after three seconds: %v", cause)
		}
		for range 50 {
			err := s.disk.run("test", "x", func() error { t.Error("an operation runs on a disk that hangs"); return nil })
			if !errors.Is(err, ErrHangs) || time.Since(start) != 3*time.Second {
				t.Errorf("%v after %s", err, time.Since(start))
				break
			}
		}
		close(stuck)
		synctest.Wait()
		if !late.closed.Load() {
			t.Error("a late result is not closed")
		}
		if err := s.disk.run("test", "x", func() error { return nil }); err != nil || s.Works().Err() != nil {
			t.Errorf("the disk still hangs: %v", err)
		}
		synctest.Wait()
		if len(s.disk.slots) != 0 {
			t.Errorf("%d operations are still counted", len(s.disk.slots))
		}
	})
}

// TestSlowDisk checks that after an operation of two seconds the disk does not count as hanging,
// and that only the late result is closed.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{disk: newDisk()}
		inTime, late := &result{}, &result{}
		if got, err := on(s.disk, "test", "x", func() (*result, error) { <-time.After(999 * time.Millisecond); return inTime, nil }); err != nil || got != inTime {
			t.Errorf("an operation in time: %v", err)
		}
		if _, err := on(s.disk, "test", "x", func() (*result, error) { <-time.After(2 * time.Second); return late, nil }); !errors.Is(err, ErrSlow) {
			t.Errorf("an operation of two seconds: %v", err)
		}
		works := s.Works()
		<-time.After(10 * time.Second)
		synctest.Wait()
		if works.Err() != nil || !late.closed.Load() || inTime.closed.Load() {
			t.Errorf("works: %v, closed: late %t, in time %t", works.Err(), late.closed.Load(), inTime.closed.Load())
		}
	})
}

// TestTwoHangingOperations checks that the disk counts as hanging until both operations have
// returned.
func TestTwoHangingOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{disk: newDisk()}
		stuck := []chan struct{}{make(chan struct{}), make(chan struct{})}
		for _, one := range stuck {
			go func() { _ = s.disk.run("test", "x", func() error { <-one; return nil }) }()
		}
		<-time.After(hanging)
		synctest.Wait()
		close(stuck[0])
		synctest.Wait()
		if s.Works().Err() == nil {
			t.Error("the disk works although an operation has not returned")
		}
		close(stuck[1])
		synctest.Wait()
		if s.Works().Err() != nil {
			t.Error("the disk hangs although all operations have returned")
		}
	})
}

// TestOperationBound checks that at most 512 operations wait for the disk, and that others fail
// after a second without starting.
func TestOperationBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		stuck := make(chan struct{})
		var running, ended atomic.Int64
		for range 600 {
			go func() {
				err := d.run("test", "x", func() error { running.Add(1); <-stuck; return nil })
				if !errors.Is(err, ErrSlow) {
					t.Errorf("an operation: %v", err)
				}
				ended.Add(1)
			}()
		}
		synctest.Wait()
		if n := running.Load(); n != 512 {
			t.Errorf("%d operations run", n)
		}
		<-time.After(operation)
		synctest.Wait()
		if running.Load() != 512 || ended.Load() != 600 {
			t.Errorf("%d operations run, %d callers have given up after a second", running.Load(), ended.Load())
		}
		close(stuck)
		synctest.Wait()
		if err := d.run("test", "x", func() error { return nil }); err != nil {
			t.Errorf("after all have returned: %v", err)
		}
	})
}
