// Package index tracks the size and last use of stored content, and chooses what to evict: content
// whose TTL has ended and, when space is needed, the least recently used content. An Index exists
// in memory only: it is rebuilt from the volume after a restart.
//
// The package accesses neither files nor the network.
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
	// mostLinks limits how many links of a blob are recorded (see Index.Link).
	mostLinks = 64
	// mostTags is the maximum number of stored tags that refer to one manifest.
	mostTags = 64
	// batch is the maximum number of entries that are removed at a time, so that waits are short.
	batch = 10
)

// Index tracks the stored content. It is safe for concurrent use.
type Index struct {
	mu     sync.Mutex
	blobs  *simplelru.LRU[digest.Digest, *store.Blob]
	bytes  int64
	tags   map[store.TagName]tag // at most mostTags for each blob
	held   map[digest.Digest]int // the number of readers of a blob
	listed bool                  // Merge has been called
}

// tag is the manifest to which a tag referred when the upstream last answered.
type tag struct {
	to        digest.Digest
	confirmed time.Time // when the upstream was asked
	here      bool      // confirmed by this process, so the time is monotonic
}

// New returns an empty index.
func New() *Index {
	i := &Index{tags: map[store.TagName]tag{}, held: map[digest.Digest]int{}}
	removed := func(_ digest.Digest, at *store.Blob) { i.bytes -= at.Size }
	i.blobs, _ = simplelru.NewLRU(math.MaxInt, removed) // NewLRU returns an error only for a size of 0
	return i
}

// Merge adds the content that a walk of the volume has found. To existing entries, it adds only
// links. Times after now are wrong, and count as now. Nothing is evicted before Merge.
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

// Use records a use of a stored blob of the given size, and returns the time of the previous use.
func (i *Index) Use(blob digest.Digest, size int64, now time.Time) (before time.Time) {
	return i.touch(blob, size, now, false)
}

// Left records the size of the partial blob that a failed download leaves.
func (i *Index) Left(blob digest.Digest, size int64, now time.Time) {
	if i.touch(blob, size, now, size > 0); size == 0 {
		i.Forget(blob, now.Add(1))
	}
}

func (i *Index) touch(blob digest.Digest, size int64, now time.Time, partial bool) (before time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := i.entry(blob)
	i.blobs.Get(blob) // moves it to the front
	i.bytes += size - at.Size
	before = at.Used
	at.Size, at.Used, at.Partial = size, now, partial
	return before
}

// entry returns the entry of a blob, and creates it if needed.
func (i *Index) entry(blob digest.Digest) *store.Blob {
	at, ok := i.blobs.Peek(blob)
	if !ok {
		at = &store.Blob{}
		i.blobs.Add(blob, at)
	}
	return at
}

// Link records that a repository contains a stored blob, and reports whether that is new. It
// records at most mostLinks for a blob, and always the first one of each kind: without it, the blob
// is not served as that kind.
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

// Is reports whether the upstream has served the blob in any repository as a manifest or, if
// manifest is false, as a blob. It also reports whether the index is complete.
func (i *Index) Is(blob digest.Digest, manifest bool) (confirmed, listed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at, ok := i.blobs.Peek(blob)
	return ok && at.Is(manifest), i.listed
}

// Confirm records the manifest to which a tag referred when the upstream was asked. It returns the
// manifest to which the tag now refers: the answer to a later request takes precedence. Confirm
// returns "" if mostTags tags already refer to the manifest: then the tag must not be stored.
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

// Fresh reports whether this process has recently confirmed that the tag refers to the manifest.
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

// Forget records that a blob was not stored at the given time. It ignores a partial blob, and one
// that was stored later. The entry remains if it contains links or tags.
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

// Restore puts back a blob that could not be removed from the volume, as the last one to evict. It
// does not change tags that were confirmed meanwhile.
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

// Size returns the number of blobs and their bytes. A blob counts once for all repositories.
func (i *Index) Size() (blobs int, bytes int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.blobs.Len(), i.bytes
}

// Hold changes the number of readers of a blob by 1 or -1. A blob with readers is not evicted: that
// would free no space.
func (i *Index) Hold(blob digest.Digest, more int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held[blob] += more; i.held[blob] == 0 {
		delete(i.held, blob)
	}
}

// Expired removes and returns up to batch blobs that were last used before since.
func (i *Index) Expired(since time.Time) map[digest.Digest]store.Blob {
	return i.take(func(at *store.Blob) bool { return at.Used.Before(since) })
}

// Excess removes and returns up to batch of the least recently used blobs, so that their removal
// frees the given numbers of bytes and files. Each file counts twice: it is in a folder of its own.
func (i *Index) Excess(bytes int64, files int) map[digest.Digest]store.Blob {
	return i.take(func(at *store.Blob) bool {
		more := bytes > 0 || files > 0
		bytes -= at.Size
		files -= 2 * (1 + len(at.Links) + 2*len(at.Tags))
		return more
	})
}

// take removes up to batch of the least recently used entries while wanted returns true, and
// returns them. It skips blobs with readers, and removes nothing before Merge.
func (i *Index) take(wanted func(*store.Blob) bool) map[digest.Digest]store.Blob {
	i.mu.Lock()
	defer i.mu.Unlock()
	victims := map[digest.Digest]store.Blob{}
	for left := i.blobs.Len(); i.listed && len(victims) < batch && left > 0; left-- {
		blob, at, _ := i.blobs.GetOldest()
		if i.held[blob] > 0 {
			i.blobs.Get(blob) // in use
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

// ExpiredTags removes and returns up to batch tags that were last confirmed before since.
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
