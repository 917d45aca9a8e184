package cache

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
)

const (
	// abandoned is how long a download or a check continues without clients.
	abandoned = 30 * time.Second
	// mostArrivals limits downloads: at this number of arrivals, further blobs pass through.
	mostArrivals = 256
	// checkPatience is how long a check may delay the first bytes to clients.
	checkPatience = 300 * time.Millisecond
	// checksAtOnce limits how many stored blobs are checked at the same time.
	checksAtOnce = 2
)

// arrival is the download or the check of a blob. Clients read the bytes that have arrived, but
// receive the last byte only after the digest has been verified.
type arrival struct {
	cache  *Cache
	blob   digest.Digest
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	changed *sync.Cond
	file    *os.File
	size    int64 // -1 until known
	have    int64 // bytes in the file
	hidden  bool  // clients must not read yet: the content is encoded, or its check may end soon
	checked bool
	ended   bool
	err     error
	clients int
	leaving *time.Timer // ends an arrival without clients
}

// start returns the arrival of a blob. If there is none, start creates one and calls run in the
// background. It returns nil if the cache is stopping, or if the number of arrivals has reached
// most.
func (c *Cache) start(blob digest.Digest, most int, run func(context.Context, *arrival) error) (a *arrival, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.arrivals[blob]; a != nil {
		return a, false
	}
	if c.closed || len(c.arrivals) >= most {
		return nil, false
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	a = &arrival{cache: c, blob: blob, cancel: cancel, size: -1}
	a.changed = sync.NewCond(&a.mu)
	a.leaving = time.AfterFunc(abandoned, func() { cancel(errAbandoned) })
	c.arrivals[blob] = a
	c.ended.Go(func() {
		err := run(ctx, a)
		cancel(nil)
		a.leaving.Stop()
		c.mu.Lock()
		delete(c.arrivals, blob)
		c.mu.Unlock()
		a.update(func() {
			a.err, a.checked, a.ended = err, err == nil, true
			a.closeUnused()
		})
	})
	return a, true
}

// check verifies a stored blob in the background, unless the blob is arriving. It closes the file.
func (c *Cache) check(blob digest.Digest, file *store.File) {
	// mostArrivals does not limit checks: while the upstream is away, only the stored file can answer.
	_, isNew := c.start(blob, math.MaxInt, func(ctx context.Context, a *arrival) error {
		defer context.AfterFunc(ctx, func() { _ = file.Close() })() // nothing else interrupts a read
		a.update(func() { a.file, a.size, a.have, a.hidden = file.File, file.Size, file.Size, true })
		defer time.AfterFunc(checkPatience, func() { a.update(func() { a.hidden = false }) }).Stop()
		if c.checks.Acquire(ctx, 1) != nil {
			return context.Cause(ctx)
		}
		defer c.checks.Release(1)
		err := c.options.Store.Check(blob, file.File)
		if ctx.Err() != nil {
			return context.Cause(ctx) // the file was closed
		}
		if err != nil && !errors.Is(err, store.ErrNotStored) {
			c.pass(blob) // the disk cannot read it
		}
		return err
	})
	if !isNew {
		_ = file.Close()
	}
}

// join returns the arrival of a blob. A new one starts once the upstream has confirmed that the
// repository contains the blob. join returns nil if the blob has been stored meanwhile.
func (c *Cache) join(ctx context.Context, q Query, blob digest.Digest) (*arrival, error) {
	if c.passes(blob) && !q.Stored { // even while the blob arrives, because the disk failed to read it
		return nil, errUnstored
	}
	if a := c.arrivalOf(blob); a != nil {
		metrics.Shared.WithLabelValues("blob").Inc()
		return a, nil
	}
	if q.Stored {
		return nil, ErrNotHere
	}
	path := "blobs/" + blob.String()
	return ask(ctx, c, "blob", http.MethodGet, q.Repository, path, func(ctx context.Context) (*arrival, error) {
		return c.fetch(ctx, store.Link{Repository: q.Repository}, blob)
	})
}

func (c *Cache) arrivalOf(blob digest.Digest) *arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrivals[blob]
}

// enter adds a client, which must call leave. If whole is set, it waits for the first bytes,
// otherwise for the end of the arrival. It returns the size, or -1 if unknown. isOpen reports
// whether copy can be called.
func (a *arrival) enter(ctx context.Context, whole bool) (size int64, isOpen bool, err error) {
	if a == nil {
		return 0, false, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients++
	a.leaving.Stop()
	if err := a.await(ctx, func() bool { return whole && (a.shown() > 0 || a.checked) }); err != nil {
		return 0, false, err
	}
	return a.size, a.file != nil, a.err
}

// await waits until ready returns true, the arrival ends, or ctx is done. The caller must hold
// a.mu.
func (a *arrival) await(ctx context.Context, ready func() bool) error {
	defer context.AfterFunc(ctx, func() { a.update(func() {}) })()
	for !ready() && !a.ended {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		a.changed.Wait()
	}
	return nil
}

// leave removes a client that enter has added.
func (a *arrival) leave() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clients--; a.clients == 0 && !a.ended {
		a.leaving.Reset(abandoned)
	}
	a.closeUnused()
}

func (a *arrival) closeUnused() {
	if a.ended && a.clients == 0 && a.file != nil {
		_ = a.file.Close()
		a.file = nil
	}
}

// update calls change with a.mu locked, and wakes all waiting clients.
func (a *arrival) update(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	a.changed.Broadcast()
}

// shown returns the number of bytes that clients may read.
func (a *arrival) shown() int64 {
	switch {
	case a.checked:
		return a.have
	case a.hidden:
		return 0
	default:
		return a.have - 1
	}
}

// copy copies the blob to a client as it arrives. It fails if the arrival or a write to w fails, or
// when ctx is done.
func (a *arrival) copy(ctx context.Context, w io.Writer) error {
	a.mu.Lock()
	file := a.file
	a.mu.Unlock()
	file, err := a.cache.options.Store.Reopen(file) // so that sendfile can be used
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for offset := int64(0); ; {
		end, checked, err := a.next(ctx, offset)
		if err != nil {
			return err
		}
		n, err := io.CopyN(w, file, end-offset)
		offset += n
		if errors.Is(err, syscall.EIO) {
			a.cancel(err)
			a.cache.pass(a.blob)
		}
		if err != nil || checked {
			return err
		}
	}
}

// next waits until clients may read more than offset bytes. It returns how many they may read, and
// whether the blob is complete and verified.
func (a *arrival) next(ctx context.Context, offset int64) (end int64, checked bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err = a.await(ctx, func() bool { return a.shown() > offset || a.checked })
	if err == nil && a.shown() <= offset {
		err = a.err
	}
	return a.shown(), a.checked, err
}

// drop removes a partial blob, unless the blob is arriving.
func (c *Cache) drop(blob digest.Digest) error {
	c.mu.Lock()
	if c.arrivals[blob] != nil {
		c.mu.Unlock()
		return nil
	}
	remove, err := c.options.Store.SetPartialAside(blob)
	c.mu.Unlock()
	return errors.Join(err, remove())
}

// refuse makes a blob that cannot be stored pass through, logs why, and returns errUnstored.
func (c *Cache) refuse(blob digest.Digest, why error) error {
	c.pass(blob)
	slog.Warn("the volume cannot store a blob: it passes through", "blob", blob, "error", why)
	return errUnstored
}
