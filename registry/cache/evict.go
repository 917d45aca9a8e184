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
	// every is how often the cache looks for what has expired, or more often for a short TTL.
	every = time.Minute
	// grace is how long nothing expires after a start, or less for a short TTL: after a hibernation
	// all is overdue, and nodes ask for what they need first.
	grace = 10 * time.Minute
	// rest is the pause between two batches of an eviction for which nobody waits.
	rest = 10 * time.Millisecond
	// reserve is the part of the volume, in percent, that stays free. In the background the cache
	// evicts until twice as much is free, so that a download seldom waits for an eviction.
	reserve = 5
	// unknownShare is the part of the volume that a blob of unknown size may take, as a divisor.
	unknownShare = 4
	// lastWait is how long the end of Run waits for the end of the list.
	lastWait = time.Second
	// roomPatience is how long a download waits for an eviction before it passes the volume.
	roomPatience = 100 * time.Millisecond
)

// room is reserved for a file. The volume says itself how much of it the file has taken.
type room struct {
	cache         *Cache
	size, awaited int64
}

// wrote says that the file has these bytes now.
func (r *room) wrote(bytes int64) {
	bytes = min(bytes, r.awaited)
	r.awaited -= bytes
	r.cache.awaited.Add(-bytes)
}

// release is called when the file is stored or does not grow any more.
func (r *room) release() {
	r.wrote(r.awaited)
	r.cache.reserved.Add(-r.size)
	r.size = 0
}

// reserve reports whether the volume has room for these bytes, and evicts for it.
func (c *Cache) reserve(bytes int64) (*room, bool) {
	r := &room{cache: c}
	return r, r.add(bytes)
}

// add makes the room larger, if the volume has so much. Those who wait for an eviction have their
// room reserved, so that it is one for all of them.
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
		case c.evictions <- func() { more <- c.evict(0, reserve) || c.fits() }: // until another one reserves more
			select {
			case evicted = <-more:
			case <-timeout:
			}
		case <-timeout:
		}
	}
}

// fits reports whether all that is reserved has room.
func (c *Cache) fits() bool {
	short, files, err := c.short(0, reserve)
	return err == nil && short <= 0 && files <= 0
}

// step makes the room larger for a file of this size, which will have more bytes than the upstream
// has told. It may take a part of the volume only: all that is stored would go for a body without
// an end.
func (r *room) step(size int64) bool {
	space, err := r.cache.capacity()
	return err == nil && max(r.size, size)+step <= space.Bytes/unknownShare && r.add(step)
}

// capacity is what the cache may use: the volume, or less with a limit. On a file system that
// others use, too, what they leave is all that is free.
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

// short returns how many bytes and files must go before a file of this size fits beside those that
// arrive, and this part of the volume, in percent, stays free. It fails if all that is stored would
// not be enough.
func (c *Cache) short(bytes, percent int64) (short int64, files int, err error) {
	space, err := c.capacity()
	short = c.awaited.Load() + space.Bytes*percent/100 - space.FreeBytes
	if _, stored := c.index.Size(); err == nil && bytes > stored-short { // a sum could overflow
		err = errNoRoom
	}
	return short + bytes, int(space.Inodes*reserve/100 - space.FreeInodes), err
}

// Run lists what is stored, and evicts until ctx ends.
func (c *Cache) Run(ctx context.Context) {
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		found, err := c.options.Store.Contents(ctx)
		if err != nil {
			slog.Error("what is stored is only partly known", "error", err)
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
			if c.evict(0, 2*reserve) || c.now().Sub(started) >= spared && c.expire() {
				next = time.After(rest)
			}
			c.measure()
		}
	}
}

// evict removes a batch of blobs if a file of this size needs that, and returns whether it has.
func (c *Cache) evict(bytes, percent int64) bool {
	short, files, err := c.short(bytes, percent)
	if err != nil && !errors.Is(err, errNoRoom) {
		slog.Error("the volume does not say what it has left", "error", err)
	}
	return err == nil && c.remove(c.index.Excess(short, files), "space")
}

// expire removes a batch of what was not used for the TTL, and returns whether there was any.
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

// remove returns whether a blob was removed. One that stays counts as used last, so that the next
// batch has others.
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
		slog.Warn("evicted blobs stay", "blobs", len(failed), "error", failed[0])
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
