package cache

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
)

const (
	// every is the time between two background evictions. A short TTL shortens it.
	every = time.Minute
	// grace is how long nothing expires after a start. If the TTL is shorter, it applies instead.
	// After a hibernation, the TTL of all content has ended, but nodes need the content again.
	grace = 10 * time.Minute
	// rest is the pause between two batches of a background eviction.
	rest = 10 * time.Millisecond
	// reserve is the percentage of the volume's bytes and inodes that stays free. The background
	// eviction keeps twice as much free, so that downloads rarely wait for an eviction.
	reserve = 5
	// unknownShare limits a blob of unknown size to a fraction of the volume: 1/unknownShare.
	unknownShare = 4
	// lastWait limits how long Run waits for the list of stored content before it returns.
	lastWait = time.Second
	// roomPatience is how long a reservation waits for an eviction.
	roomPatience = 100 * time.Millisecond
)

// room is the space reserved for a file. Its bytes are awaited until they are written. From then
// on, the volume's free space no longer includes them.
type room struct {
	cache         *Cache
	size, awaited int64
}

// wrote records that bytes of the file have been written.
func (r *room) wrote(bytes int64) {
	bytes = min(bytes, r.awaited)
	r.awaited -= bytes
	r.cache.awaited.Add(-bytes)
}

// release ends the reservation. The caller must call it when the file no longer grows.
func (r *room) release() {
	r.wrote(r.awaited)
	r.cache.reserved.Add(-r.size)
	r.size = 0
}

// reserve reserves room for a file, and reports whether there is enough. It evicts if needed.
func (c *Cache) reserve(bytes int64) (*room, bool) {
	r := &room{cache: c}
	return r, r.add(bytes)
}

// add enlarges the room if the volume allows it, and reports whether it did. Callers that wait for
// an eviction have already reserved their room, so one eviction serves them all.
func (r *room) add(bytes int64) bool {
	c, timeout, more := r.cache, time.After(roomPatience), make(chan bool, 1)
	if _, _, err := c.short(bytes, reserve); bytes < 0 || err != nil {
		return false
	}
	take := func(bytes int64) {
		r.size, r.awaited = r.size+bytes, r.awaited+bytes
		c.reserved.Add(bytes)
		c.awaited.Add(bytes)
	}
	take(bytes)
	for evicted := true; ; {
		if c.fits() {
			return true
		} else if !evicted {
			take(-bytes)
			return false
		}
		evicted = false
		select {
		case c.evictions <- func() { more <- c.evict(reserve) || c.fits() }: // then the file fits, unless another caller reserves more
			select {
			case evicted = <-more:
			case <-timeout:
			}
		case <-timeout:
		}
	}
}

// fits reports whether all reservations fit on the volume, and reserve percent of it stays free.
func (c *Cache) fits() bool {
	short, files, err := c.short(0, reserve)
	return err == nil && short <= 0 && files <= 0
}

// step enlarges the room of a file of unknown size, unless the file would exceed its fraction of
// the volume (unknownShare): an endless body must not evict everything.
func (r *room) step(size int64) bool {
	space, err := r.cache.capacity()
	return err == nil && max(r.size, size)+step <= space.Bytes/unknownShare && r.add(step)
}

// capacity returns the space that the cache may use: the whole volume, or less if the cache has a
// limit. Others may use the file system as well, so free space is never more than the volume
// reports.
func (c *Cache) capacity() (store.Space, error) {
	space, err := c.options.Store.Space()
	if limit := c.limit.Load(); err == nil && limit > 0 && limit < space.Bytes {
		_, stored := c.index.Size()
		space.FreeBytes = min(space.FreeBytes, limit-stored-c.reserved.Load()+c.awaited.Load())
		space.Inodes /= space.Bytes / limit
		space.Bytes = limit
	}
	return space, err
}

// short returns how many bytes and files must be evicted so that all reserved files and another one
// of the given size fit, and percent of the volume and reserve percent of its inodes remain free.
// If nothing must be evicted, the numbers are 0 or less. It returns errNoRoom if evicting
// everything would not free enough bytes.
func (c *Cache) short(bytes, percent int64) (short int64, files int, err error) {
	space, err := c.capacity()
	short = c.awaited.Load() + space.Bytes*percent/100 - space.FreeBytes
	if _, stored := c.index.Size(); err == nil && bytes > stored-short { // bytes+short could overflow
		err = errNoRoom
	}
	return short + bytes, int(space.Inodes*reserve/100 - space.FreeInodes), err
}

// Run lists the stored content, and evicts until ctx is done.
func (c *Cache) Run(ctx context.Context) {
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		found, err := c.options.Store.Contents(ctx)
		if err != nil {
			slog.Error("the list of stored content is incomplete", "error", err)
		}
		c.index.Merge(found, c.now())
	}()
	started, interval, spared := c.now(), every, grace
	if ttl := c.options.TTL; ttl > 0 {
		interval, spared = min(every, max(ttl/10, time.Second)), min(grace, ttl)
	}
	next := time.After(interval)
	c.measure()
	for {
		select {
		case <-ctx.Done():
			select {
			case <-listed:
			case <-time.After(lastWait): // the disk hangs
			}
			return
		case evict := <-c.evictions:
			evict()
		case <-next:
			next = time.After(interval)
			c.limit.Store(c.options.Limit())
			if c.evict(2*reserve) || c.now().Sub(started) >= spared && c.expire() {
				next = time.After(rest)
			}
			c.measure()
		}
	}
}

// evict removes a batch of blobs unless all reserved files fit and leave percent of the volume
// free. It reports whether it removed any.
func (c *Cache) evict(percent int64) bool {
	short, files, err := c.short(0, percent)
	if err != nil && !errors.Is(err, errNoRoom) {
		slog.Error("the free space of the volume is unknown", "error", err)
	}
	return err == nil && c.remove(c.index.Excess(short, files), "space")
}

// expire removes a batch of blobs and tags whose TTL has ended, and reports whether it removed any.
func (c *Cache) expire() bool {
	if c.options.TTL == 0 {
		return false
	}
	since := c.now().Add(-c.options.TTL)
	removed := false
	for _, tag := range c.index.ExpiredTags(since) {
		removed = c.forget(tag) || removed
	}
	return c.remove(c.index.Expired(since), "ttl") || removed
}

// remove removes the victims from the volume, and reports whether it removed any. A blob that it
// cannot remove becomes the last one to evict, so the next batch does not contain it.
func (c *Cache) remove(victims map[digest.Digest]store.Blob, reason string) (removed bool) {
	var failed []error
	for blob, stored := range victims {
		err := c.options.Store.Remove(blob, stored)
		if stored.Partial {
			err = errors.Join(err, c.drop(blob))
		}
		if err != nil {
			failed = append(failed, err)
			c.index.Restore(blob, stored)
			continue
		}
		removed = true
		metrics.Evicted.WithLabelValues(reason).Add(float64(stored.Size))
	}
	if len(failed) > 0 {
		slog.Warn("evicted blobs stay on the volume", "blobs", len(failed), "error", failed[0])
	}
	return removed
}

func (c *Cache) measure() {
	blobs, bytes := c.index.Size()
	metrics.Blobs.Set(float64(blobs))
	metrics.Bytes.Set(float64(bytes))
	if space, err := c.options.Store.Space(); err == nil {
		metrics.Free.Set(float64(space.FreeBytes))
		metrics.Inodes.Set(float64(space.FreeInodes))
	}
}
