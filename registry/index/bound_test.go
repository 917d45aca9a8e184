package index

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/store"
)

var (
	blob  = digest.FromString("blob")
	other = digest.FromString("other blob")
	noon  = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
)

// emptyIndex returns the index of an empty volume.
func emptyIndex() *Index {
	i := New()
	i.Merge(store.Contents{}, noon)
	return i
}

// get returns the entry of a blob.
func (i *Index) get(blob digest.Digest) store.Blob {
	if at, ok := i.blobs.Peek(blob); ok {
		return *at
	}
	return store.Blob{}
}

// TestLinkBound checks that a blob has at most 64 distinct links, and can be linked as a manifest
// although 64 repositories contain it as a blob.
func TestLinkBound(t *testing.T) {
	i := New()
	if i.Link(blob, store.Link{Repository: "a"}) {
		t.Error("a link of a blob that is not stored was recorded")
	}
	i.Use(blob, 1, noon)
	for n := range mostLinks + 1 {
		if recorded := i.Link(blob, store.Link{Repository: fmt.Sprint(n)}); recorded != (n < 64) {
			t.Errorf("link %d is recorded: %t", n+1, recorded)
		}
	}
	if i.Link(blob, store.Link{Repository: "0"}) {
		t.Error("an existing link is reported as new")
	}
	if i.Link(blob, store.Link{Repository: "m", Manifest: true}) == i.Link(blob, store.Link{Repository: "n", Manifest: true}) {
		t.Error("a blob with 64 links is not linked as a manifest, or more than once")
	}
	if links := i.get(blob).Links; len(links) != 65 {
		t.Errorf("%d links", len(links))
	}
}

// TestTagBound checks that a manifest has at most 64 tags, which can be confirmed again.
func TestTagBound(t *testing.T) {
	i := New()
	name := func(n int) store.TagName { return store.TagName{Repository: "a", Tag: fmt.Sprint(n)} }
	for n := range mostTags + 1 {
		if stored := i.Confirm(name(n), blob, noon) == blob; stored != (n < 64) {
			t.Errorf("tag %d is recorded: %t", n+1, stored)
		}
	}
	if i.Confirm(name(0), blob, noon.Add(time.Minute)) != blob {
		t.Error("an existing tag is not confirmed")
	}
	if i.Fresh(name(64), blob, noon, time.Minute) || len(i.tags) != 64 || len(i.get(blob).Tags) != 64 {
		t.Errorf("%d tags, %d of the manifest", len(i.tags), len(i.get(blob).Tags))
	}
	i.ForgetTag(name(1))
	if i.Confirm(name(64), blob, noon) != blob {
		t.Error("a forgotten tag does not make room for another")
	}
}

// TestMergeBound checks that the bounds hold for a stock image's volume with more links and tags.
func TestMergeBound(t *testing.T) {
	found := store.Contents{Blobs: map[digest.Digest]*store.Blob{blob: {}}, Tags: map[store.TagName]store.Tag{}}
	for n := range 70 {
		found.Blobs[blob].Links = append(found.Blobs[blob].Links, store.Link{Repository: fmt.Sprint(n)})
		found.Tags[store.TagName{Repository: fmt.Sprint(n), Tag: "v1"}] = store.Tag{To: blob}
	}
	i := New()
	i.Merge(found, noon)
	if at := i.get(blob); len(at.Links) != 65 || len(at.Tags) != 64 || len(i.tags) != 64 {
		t.Errorf("%d links, %d tags of the manifest, %d tags", len(at.Links), len(at.Tags), len(i.tags))
	}
}

// TestExcessBound checks that Excess returns at most a batch, the least recently used blobs, and no
// more than needed.
func TestExcessBound(t *testing.T) {
	i := emptyIndex()
	for n := range 3 * batch {
		i.Use(digest.FromString(fmt.Sprint(n)), 10, noon.Add(time.Duration(n)))
	}
	if victims := i.Excess(0, 0); len(victims) != 0 {
		t.Errorf("%d victims although nothing is short", len(victims))
	}
	if _, ok := i.Excess(15, 0)[digest.FromString("1")]; !ok {
		t.Error("the second oldest blob stays, but 15 bytes are short and each blob has 10")
	}
	if victims := i.Excess(0, 4); len(victims) != 2 { // each is a file in a folder
		t.Errorf("%d victims for 4 files", len(victims))
	}
	if victims := i.Excess(1<<40, 0); len(victims) != batch {
		t.Errorf("%d victims at once", len(victims))
	}
	if blobs, bytes := i.Size(); blobs != 16 || bytes != 160 {
		t.Errorf("%d blobs with %d bytes are left", blobs, bytes)
	}
	if victims := i.Expired(noon.Add(time.Hour)); len(victims) != batch {
		t.Errorf("%d expired at once", len(victims))
	}
	for n := range 3 * batch {
		i.Confirm(store.TagName{Repository: "a", Tag: fmt.Sprint(n)}, blob, noon)
	}
	if tags := i.ExpiredTags(noon.Add(time.Hour)); len(tags) != batch || slices.Contains(i.get(blob).Tags, tags[0]) {
		t.Errorf("%d tags expired at once, want %d, which the manifest no longer lists", len(tags), batch)
	}
}

// TestNothingGoesBeforeMerge checks that nothing is evicted before Merge: until then, the index
// contains only what was just used.
func TestNothingGoesBeforeMerge(t *testing.T) {
	i := New()
	i.Use(blob, 1, noon)
	i.Confirm(store.TagName{Repository: "a", Tag: "v1"}, blob, noon)
	later := noon.Add(time.Hour)
	if n := len(i.Excess(1, 1)) + len(i.Expired(later)) + len(i.ExpiredTags(later)); n != 0 {
		t.Errorf("%d entries go before Merge", n)
	}
	i.Merge(store.Contents{}, noon)
	if tags := i.ExpiredTags(later); len(tags) != 1 {
		t.Errorf("%d tags expire after Merge", len(tags))
	}
	if blobs := i.Expired(later); len(blobs) != 1 {
		t.Errorf("%d blobs expire after Merge", len(blobs))
	}
}
