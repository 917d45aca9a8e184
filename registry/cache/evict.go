package cache

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/fetch"
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
	// roomPatience is how long a download waits for an eviction before it passes the volume.
	roomPatience = 100 * time.Millisecond
)

// roomRequest asks for room. more says whether something was evicted for it.
type roomRequest struct {
	bytes int64
	more  chan bool
}

// room is reserved for a file. The volume says itself how much of it the file has taken.
type room struct {
	cache         *Cache
	size, awaited int64
}

// Wrote implements fetch.Room.
func (r *room) Wrote(bytes int64) {
	r.awaited -= bytes
	r.cache.awaited.Add(-bytes)
}

// Release implements fetch.Room.
func (r *room) Release() {
	r.Wrote(r.awaited)
	r.cache.reserved.Add(-r.size)
}

// Reserve implements fetch.Volume.
func (c *Cache) Reserve(bytes int64) (_ fetch.Room, ok bool) {
	timeout := time.After(roomPatience)
	if !c.canFit(bytes, reserve) {
		return nil, false
	}
	for {
		room := &room{c, bytes, bytes}
		c.reserved.Add(bytes)
		c.awaited.Add(bytes)
		if space, files := c.short(0, reserve); space <= 0 && files <= 0 {
			return room, true
		}
		room.Release()
		r := roomRequest{bytes, make(chan bool, 1)}
		select {
		case c.requests <- r:
		case <-timeout:
			return nil, false
		}
		select {
		case more := <-r.more:
			if !more {
				return nil, false
			}
		case <-timeout:
			return nil, false
		}
	}
}

// canFit reports whether a file of this size would fit beside those that arrive, and this part of
// the volume, in percent, would be free, if all that is stored went. Others may use the volume,
// too.
func (c *Cache) canFit(bytes, percent int64) bool {
	space, err := c.options.Store.Space()
	_, stored := c.index.Size()
	return err == nil && bytes+c.awaited.Load() <= space.FreeBytes+stored-space.Bytes*percent/100 &&
		(c.options.Limit == 0 || bytes+c.reserved.Load() <= c.options.Limit)
}

// Run lists what is stored, and evicts until ctx ends.
func (c *Cache) Run(ctx context.Context) {
	// Before all is listed, the index has only what was used since the start, the last to go.
	listed, done := make(chan struct{}), atomic.Bool{}
	go func() {
		defer close(listed)
		defer done.Store(true)
		found, err := c.options.Store.Contents(ctx)
		if err != nil {
			slog.Error("what is stored is only partly known", "error", err)
		}
		c.index.Merge(found)
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
			<-listed
			return
		case r := <-c.requests:
			r.more <- done.Load() && c.evict(r.bytes, reserve)
		case <-next:
			next = time.After(interval)
			if !done.Load() {
				continue
			}
			if c.canFit(0, 2*reserve) && c.evict(0, 2*reserve) || c.now().Sub(started) >= spared && c.expire() {
				next = time.After(rest)
			}
			c.measure()
		}
	}
}

// evict removes a batch of blobs if short returns any, and returns whether it has.
func (c *Cache) evict(bytes, percent int64) bool {
	return c.remove(c.index.Excess(c.short(bytes, percent)), "space")
}

// short returns how many bytes and files must go before a file of this size fits and this part of
// the volume, in percent, stays free. With a limit only the reserve stays free.
func (c *Cache) short(bytes, percent int64) (short int64, files int) {
	space, err := c.options.Store.Space()
	if err != nil {
		slog.Error("the volume does not say what it has left", "error", err)
		return 0, 0
	}
	if c.options.Limit > 0 {
		_, stored := c.index.Size()
		short, percent = stored+bytes+c.reserved.Load()-c.options.Limit, reserve
	}
	short = max(short, bytes+c.awaited.Load()+space.Bytes*percent/100-space.FreeBytes)
	return short, int(space.Inodes*reserve/100 - space.FreeInodes)
}

// expire removes a batch of what was not used for the TTL, and returns whether there was any.
func (c *Cache) expire() bool {
	if c.options.TTL == 0 {
		return false
	}
	since := c.now().Add(-c.options.TTL)
	removed := false
	for _, tag := range c.index.ExpiredTags(since) {
		if err := c.options.Store.RemoveTag(tag); err != nil {
			slog.Warn("an expired tag stays", "error", err)
			c.index.Confirm(tag, "", since)
			continue
		}
		removed = true
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
			err = errors.Join(err, c.fetcher.Drop(blob))
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
