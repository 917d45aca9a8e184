package upstream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// chunks is a body that delivers bytes at intervals.
type chunks struct {
	ctx   context.Context //nolint:containedctx // as in a body of net/http
	size  int
	every time.Duration
}

// Read implements io.Reader.
func (c chunks) Read(p []byte) (int, error) {
	select {
	case <-time.After(c.every):
		return min(c.size, len(p)), nil
	case <-c.ctx.Done():
		return 0, context.Cause(c.ctx)
	}
}

// Close implements io.Closer.
func (c chunks) Close() error { return nil }

// TestTrickle checks that a body fails when the upstream sends too little in ten seconds, but not
// because of a slow reader.
func TestTrickle(t *testing.T) {
	for name, test := range map[string]struct {
		size   int
		every  time.Duration
		least  int64
		buffer int
		reader time.Duration // pause between two reads
		ends   time.Duration // the failure, in time spent in Read, or 0
	}{
		"1 KiB a second":                           {1 << 10, time.Second, slowest, 32 << 10, 0, 10 * time.Second},
		"63 KiB in 10 seconds":                     {7 << 10, 1100 * time.Millisecond, slowest, 32 << 10, 0, 10 * time.Second},
		"64 KiB in 9 seconds":                      {64 << 10, 9 * time.Second, slowest, 64 << 10, 0, 0},
		"nothing":                                  {0, time.Hour, slowest, 32 << 10, 0, 10 * time.Second},
		"nothing, passed":                          {0, time.Hour, 1, 32 << 10, 0, 10 * time.Second},
		"a byte in 9 seconds, passed":              {1, 9 * time.Second, 1, 32 << 10, 0, 0},
		"slow reader":                              {32 << 10, time.Millisecond, slowest, 32 << 10, time.Minute, 0},
		"slow reader with a small buffer":          {32 << 10, time.Millisecond, slowest, 16, time.Minute, 0},
		"slow reader of an upstream that trickles": {1 << 10, time.Second, slowest, 32 << 10, time.Minute, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				body := &pacedBody{ReadCloser: chunks{ctx, test.size, test.every}, cancel: cancel, least: test.least, period: idle, left: idle}
				var waited time.Duration
				var err error
				for n := 0; n < 1000 && err == nil; n++ {
					start := time.Now()
					_, err = body.Read(make([]byte, test.buffer))
					waited += time.Since(start)
					<-time.After(test.reader)
				}
				if test.ends == 0 && err != nil || test.ends > 0 && (!errors.Is(err, errTrickles) || waited != test.ends) {
					t.Errorf("%v after %s", err, waited)
				}
				if err := body.Close(); err != nil || ctx.Err() == nil {
					t.Errorf("closing: %v; the request ends: %t", err, ctx.Err() != nil)
				}
			})
		})
	}
}

// TestTrickleAfterBurst checks that a body fails if it trickles after a fast start.
func TestTrickleAfterBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		body := &pacedBody{ReadCloser: chunks{ctx, 1 << 20, 0}, cancel: cancel, least: slowest, period: idle, left: idle}
		if n, err := body.Read(make([]byte, 1<<20)); n != 1<<20 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		body.ReadCloser = chunks{ctx, 1, time.Second}
		var err error
		start := time.Now()
		for n := 0; n < 20 && err == nil; n++ {
			_, err = body.Read(make([]byte, 1))
		}
		if took := time.Since(start); !errors.Is(err, errTrickles) || took != 10*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		_ = body.Close()
	})
}
