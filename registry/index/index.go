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

// Index is what is stored. Its methods may be called at the same time.
type Index struct {
	mu    sync.Mutex
	blobs *simplelru.LRU[digest.Digest, *store.Blob]
	bytes int64
	tags  map[store.TagName]time.Time
}

// New returns an empty index.
func New() *Index {
	i := &Index{tags: map[store.TagName]time.Time{}}
	i.blobs = i.newList()
	return i
}

// newList returns a list whose removed entries do not count any more.
func (i *Index) newList() *simplelru.LRU[digest.Digest, *store.Blob] {
	removed := func(_ digest.Digest, at *store.Blob) { i.bytes -= at.Size }
	list, _ := simplelru.NewLRU(math.MaxInt, removed) // fails for a size of 0
	return list
}

// Merge adds what a walk of the volume has found. What the index has already is newer, and stays.
func (i *Index) Merge(found store.Contents) {
	oldest := slices.SortedFunc(maps.Keys(found.Blobs), func(a, b digest.Digest) int {
		return cmp.Or(found.Blobs[a].Used.Compare(found.Blobs[b].Used), cmp.Compare(a, b))
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	merged := i.newList()
	for _, blob := range oldest {
		if at := found.Blobs[blob]; !i.blobs.Contains(blob) {
			merged.Add(blob, at)
			i.bytes += at.Size
		}
	}
	for _, blob := range i.blobs.Keys() {
		known, _ := i.blobs.Peek(blob)
		if at := found.Blobs[blob]; at != nil {
			known.Links, known.Tags = union(known.Links, at.Links), union(known.Tags, at.Tags)
		}
		merged.Add(blob, known)
	}
	i.blobs = merged
	for tag, confirmed := range found.Tags {
		if _, known := i.tags[tag]; !known {
			i.tags[tag] = confirmed
		}
	}
}

func union[E comparable](list, more []E) []E {
	for _, e := range more {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// Use records that a stored blob of this size is used by a repository. It returns whether the link
// is new, and when the blob was used before.
func (i *Index) Use(
	blob digest.Digest, size int64, l store.Link, now time.Time,
) (newLink bool, before time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := i.touch(blob, size)
	before, at.Used, at.Partial = at.Used, now, false
	links := len(at.Links)
	at.Links = union(at.Links, []store.Link{l})
	return len(at.Links) > links, before
}

// Left records that this much of a blob has arrived, and the download has ended.
func (i *Index) Left(blob digest.Digest, size int64, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := i.touch(blob, size)
	at.Used, at.Partial = now, true
}

// touch returns the entry of a blob as the most recently used one.
func (i *Index) touch(blob digest.Digest, size int64) *store.Blob {
	at, ok := i.blobs.Get(blob)
	if !ok {
		at = &store.Blob{}
		i.blobs.Add(blob, at)
	}
	i.bytes += size - at.Size
	at.Size = size
	return at
}

// Confirm records that the upstream has confirmed what a tag refers to.
func (i *Index) Confirm(tag store.TagName, blob digest.Digest, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tags[tag] = now
	if at, ok := i.blobs.Peek(blob); ok {
		at.Tags = union(at.Tags, []store.TagName{tag})
	}
}

// Confirmed returns when the upstream last confirmed a tag, or the zero time.
func (i *Index) Confirmed(tag store.TagName) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.tags[tag]
}

// Forget removes a blob that was not stored at the time. What has arrived of it stays, and so does
// a blob that was stored meanwhile.
func (i *Index) Forget(blob digest.Digest, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.blobs.Peek(blob); ok && !known.Partial && known.Used.Before(at) {
		i.blobs.Remove(blob)
	}
}

// Restore adds a blob that was removed from the index, but not from the volume, as the last one to
// be evicted.
func (i *Index) Restore(blob digest.Digest, stored store.Blob) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.blobs.Contains(blob) {
		i.blobs.Add(blob, &stored)
		i.bytes += stored.Size
	}
}

// Size returns how many blobs are stored, and their bytes. A blob counts once for all repositories.
func (i *Index) Size() (blobs int, bytes int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.blobs.Len(), i.bytes
}

// batch is how much is chosen and removed at once, so that nobody waits long.
const batch = 10

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

// take removes the least recently used entries while the function wanted returns true.
func (i *Index) take(wanted func(*store.Blob) bool) map[digest.Digest]store.Blob {
	i.mu.Lock()
	defer i.mu.Unlock()
	victims := map[digest.Digest]store.Blob{}
	for len(victims) < batch {
		blob, at, ok := i.blobs.GetOldest()
		if !ok || !wanted(at) {
			break
		}
		victims[blob] = *at
		i.blobs.Remove(blob)
	}
	return victims
}

// ExpiredTags removes and returns up to batch tags that were not confirmed since the time.
func (i *Index) ExpiredTags(since time.Time) []store.TagName {
	i.mu.Lock()
	defer i.mu.Unlock()
	var expired []store.TagName
	for tag, confirmed := range i.tags {
		if confirmed.Before(since) {
			expired = append(expired, tag)
			delete(i.tags, tag)
		}
		if len(expired) == batch {
			break
		}
	}
	return expired
}
