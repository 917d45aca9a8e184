// Package index knows what is stored, how large it is and when it was last used, and chooses what
// is evicted: by TTL and, when space is needed, by least recent use. It is lost with the process
// and rebuilt from the volume.
//
// The index is a value in memory. It knows neither files nor HTTP, and nothing in it waits.
package index

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/store"
)

const (
	// mostLinks bounds the repositories of a blob that the index, and the volume, know.
	mostLinks = 64
	// mostTags bounds the tags of a manifest. Others are not stored.
	mostTags = 64
	// batch is how much is chosen and removed at once, so that nobody waits long.
	batch = 10
)

// Index is what is stored. Its methods may be called at the same time.
type Index struct {
	mu     sync.Mutex
	blobs  *simplelru.LRU[digest.Digest, *store.Blob]
	bytes  int64
	tags   map[store.TagName]tag // at most mostTags for each blob
	held   map[digest.Digest]int // how many clients read a blob
	listed bool                  // Merge has been called
}

// tag is what the upstream has said about a tag.
type tag struct {
	to        digest.Digest
	confirmed time.Time // when the upstream was asked
	here      bool      // by this process, so that the time is monotonic
}

// New returns an empty index.
func New() *Index {
	i := &Index{tags: map[store.TagName]tag{}, held: map[digest.Digest]int{}}
	removed := func(_ digest.Digest, at *store.Blob) { i.bytes -= at.Size }
	i.blobs, _ = simplelru.NewLRU(math.MaxInt, removed) // fails for a size of 0
	return i
}

// Merge adds what a walk of the volume has found. What the index has already is newer, and stays. A
// time after now comes from another clock, and counts as now. Before Merge nothing is evicted.
func (i *Index) Merge(found store.Contents, now time.Time) {
	oldest := slices.SortedFunc(maps.Keys(found.Blobs), func(a, b digest.Digest) int {
		return cmp.Or(found.Blobs[a].Used.Compare(found.Blobs[b].Used), cmp.Compare(a, b))
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	newest := i.blobs.Keys()
	for _, blob := range oldest {
		at := found.Blobs[blob]
		at.Used, at.Links, at.Tags = earlier(at.Used, now), at.Links[:min(len(at.Links), mostLinks+1)], nil
		if known, ok := i.blobs.Peek(blob); ok {
			more := slices.DeleteFunc(at.Links, func(l store.Link) bool { return slices.Contains(known.Links, l) })
			known.Links = append(known.Links, more...)
		} else {
			i.blobs.Add(blob, at)
			i.bytes += at.Size
		}
	}
	for _, blob := range newest {
		i.blobs.Get(blob)
	}
	for name, at := range found.Tags {
		if _, known := i.tags[name]; !known {
			i.setTag(name, tag{to: at.To, confirmed: earlier(at.Confirmed, now)})
		}
	}
	i.listed = true
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

// Use records that a stored blob of this size is used, and returns when it was used before.
func (i *Index) Use(blob digest.Digest, size int64, now time.Time) (before time.Time) {
	return i.touch(blob, size, now, false)
}

// Left records that this much of a blob has arrived, and the download has ended.
func (i *Index) Left(blob digest.Digest, size int64, now time.Time) {
	if i.touch(blob, size, now, size > 0); size == 0 {
		i.Forget(blob, now.Add(1))
	}
}

func (i *Index) touch(blob digest.Digest, size int64, now time.Time, partial bool) (before time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := i.entry(blob)
	i.blobs.Get(blob) // the most recently used one
	i.bytes += size - at.Size
	before = at.Used
	at.Size, at.Used, at.Partial = size, now, partial
	return before
}

// entry returns the entry of a blob, which may be new.
func (i *Index) entry(blob digest.Digest) *store.Blob {
	at, ok := i.blobs.Peek(blob)
	if !ok {
		at = &store.Blob{}
		i.blobs.Add(blob, at)
	}
	return at
}

// Link records that the upstream has a stored blob in a repository, and returns whether that is
// new. It records at most mostLinks for a blob, and one more if that is the first of its kind: the
// blob is served as that kind only.
func (i *Index) Link(blob digest.Digest, l store.Link) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	at, ok := i.blobs.Peek(blob)
	if !ok || len(at.Links) >= mostLinks && at.Is(l.Manifest) || slices.Contains(at.Links, l) {
		return false
	}
	at.Links = append(at.Links, l)
	return true
}

// Is reports whether the upstream has called the blob a manifest, or a blob, in any repository.
// listed says that the index knows all that is stored.
func (i *Index) Is(blob digest.Digest, manifest bool) (confirmed, listed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at, ok := i.blobs.Peek(blob)
	return ok && at.Is(manifest), i.listed
}

// Confirm records that the upstream, which was asked at the time, says to what a tag refers. It
// returns to what the tag refers then: what the upstream has said to a later question stays. It is
// empty if the manifest has mostTags already: then the tag must not be stored.
func (i *Index) Confirm(name store.TagName, to digest.Digest, asked time.Time) digest.Digest {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.setTag(name, tag{to, asked, true})
}

func (i *Index) setTag(name store.TagName, to tag) digest.Digest {
	if known := i.tags[name]; known.here && to.confirmed.Before(known.confirmed) {
		return known.to
	} else if known.to != to.to {
		i.forgetTag(name)
	}
	at := i.entry(to.to)
	if !slices.Contains(at.Tags, name) {
		if len(at.Tags) >= mostTags {
			return ""
		}
		at.Tags = append(at.Tags, name)
	}
	i.tags[name] = to
	return to.to
}

// Fresh reports whether this process has confirmed within the time to what a tag refers.
func (i *Index) Fresh(name store.TagName, to digest.Digest, now time.Time, within time.Duration) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	at, ok := i.tags[name]
	return ok && at.here && at.to == to && now.Sub(at.confirmed) < within
}

// ForgetTag removes a tag.
func (i *Index) ForgetTag(name store.TagName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forgetTag(name)
}

func (i *Index) forgetTag(name store.TagName) {
	if at, ok := i.blobs.Peek(i.tags[name].to); ok {
		at.Tags = slices.DeleteFunc(at.Tags, func(one store.TagName) bool { return one == name })
	}
	delete(i.tags, name)
}

// Forget records that a blob was not stored at the time. What has arrived of it stays, and so does
// a blob that was stored meanwhile. Its links and tags are still there, so the entry stays with
// them.
func (i *Index) Forget(blob digest.Digest, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, ok := i.blobs.Peek(blob)
	if !ok || known.Partial || !known.Used.Before(at) {
		return
	}
	i.bytes -= known.Size
	known.Size = 0
	if len(known.Links)+len(known.Tags) == 0 {
		i.blobs.Remove(blob)
	}
}

// Restore adds a blob that was removed from the index, but not from the volume, as the last one to
// be evicted. A tag that was confirmed meanwhile stays as it is.
func (i *Index) Restore(blob digest.Digest, stored store.Blob) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.blobs.Contains(blob) {
		return
	}
	names := stored.Tags
	stored.Tags = nil
	i.blobs.Add(blob, &stored)
	i.bytes += stored.Size
	for _, name := range names {
		if _, known := i.tags[name]; !known {
			i.setTag(name, tag{to: blob, confirmed: stored.Used})
		}
	}
}

// Size returns how many blobs are stored, and their bytes. A blob counts once for all repositories.
func (i *Index) Size() (blobs int, bytes int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.blobs.Len(), i.bytes
}

// Hold adds to the clients that read a blob. While there are some, the blob is not evicted: that
// would free nothing.
func (i *Index) Hold(blob digest.Digest, more int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held[blob] += more; i.held[blob] == 0 {
		delete(i.held, blob)
	}
}

// Expired removes and returns up to batch blobs that were not used since the time.
func (i *Index) Expired(since time.Time) map[digest.Digest]store.Blob {
	return i.take(func(at *store.Blob) bool { return at.Used.Before(since) })
}

// Excess removes and returns the least recently used blobs until these bytes and files are free, at
// most batch. Each file of a blob has a folder of its own.
func (i *Index) Excess(bytes int64, files int) map[digest.Digest]store.Blob {
	return i.take(func(at *store.Blob) bool {
		more := bytes > 0 || files > 0
		bytes -= at.Size
		files -= 2 * (1 + len(at.Links) + 2*len(at.Tags))
		return more
	})
}

// take removes the least recently used entries while wanted returns true, and none before all are
// known.
func (i *Index) take(wanted func(*store.Blob) bool) map[digest.Digest]store.Blob {
	i.mu.Lock()
	defer i.mu.Unlock()
	victims := map[digest.Digest]store.Blob{}
	for left := i.blobs.Len(); i.listed && len(victims) < batch && left > 0; left-- {
		blob, at, _ := i.blobs.GetOldest()
		if i.held[blob] > 0 {
			i.blobs.Get(blob) // it is used now
			continue
		}
		if !wanted(at) {
			break
		}
		victims[blob] = *at
		for _, name := range at.Tags {
			delete(i.tags, name)
		}
		i.blobs.Remove(blob)
	}
	return victims
}

// ExpiredTags removes and returns up to batch tags that were not confirmed since the time.
func (i *Index) ExpiredTags(since time.Time) []store.TagName {
	i.mu.Lock()
	defer i.mu.Unlock()
	var expired []store.TagName
	for name, at := range i.tags {
		if i.listed && len(expired) < batch && at.confirmed.Before(since) {
			expired = append(expired, name)
			i.forgetTag(name)
		}
	}
	return expired
}
