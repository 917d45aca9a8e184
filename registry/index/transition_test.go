package index

import (
	"slices"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/store"
)

var tagV1 = store.TagName{Repository: "library/app", Tag: "v1"}

// TestMovedTag checks that a tag belongs only to the manifest to which it last referred.
func TestMovedTag(t *testing.T) {
	i := emptyIndex()
	i.Use(blob, 1, noon)
	i.Use(other, 1, noon)
	for _, to := range []digest.Digest{blob, other, blob, other} {
		if i.Confirm(tagV1, to, noon) != to {
			t.Fatal("a moved tag is not recorded")
		}
	}
	if tags := i.get(blob).Tags; len(tags) != 0 {
		t.Errorf("the old manifest still lists %v", tags)
	}
	if tags := i.get(other).Tags; !slices.Equal(tags, []store.TagName{tagV1}) {
		t.Errorf("the new manifest lists %v", tags)
	}
	i.take(func(at *store.Blob) bool { return len(at.Tags) == 0 }) // the old manifest
	if !i.Fresh(tagV1, other, noon, time.Second) {
		t.Error("the tag was removed with its earlier manifest")
	}
}

// TestLateAnswer checks that the answer to the latest request about a tag wins, in whatever order
// the answers arrive.
func TestLateAnswer(t *testing.T) {
	i, later := emptyIndex(), noon.Add(time.Second)
	if i.Confirm(tagV1, other, later) != other || i.Confirm(tagV1, blob, noon) != other {
		t.Error("an earlier answer replaces a later one")
	}
	if !i.Fresh(tagV1, other, later, time.Second) || i.Fresh(tagV1, other, later.Add(time.Second), time.Second) {
		t.Error("the later answer is not fresh for a second")
	}
	if i.Confirm(tagV1, blob, later.Add(time.Second)) != blob {
		t.Error("the tag cannot move")
	}
}

// TestForgottenTag checks that ForgetTag removes a tag from the index and from its manifest.
func TestForgottenTag(t *testing.T) {
	i := New()
	i.Use(blob, 1, noon)
	i.Confirm(tagV1, blob, noon)
	i.ForgetTag(tagV1)
	i.ForgetTag(tagV1)
	if at := i.get(blob); len(i.tags) != 0 || len(at.Tags) != 0 {
		t.Errorf("the index lists %v, the manifest lists %v", i.tags, at.Tags)
	}
	if blobs, bytes := i.Size(); blobs != 1 || bytes != 1 {
		t.Errorf("%d blobs with %d bytes are left, want the manifest", blobs, bytes)
	}
}

// TestFresh checks that a tag is fresh for a while, but only if this process has confirmed it.
// Before this process started, the clock may have jumped.
func TestFresh(t *testing.T) {
	i := New()
	i.Merge(store.Contents{Tags: map[store.TagName]store.Tag{tagV1: {To: blob, Confirmed: noon}}}, noon)
	if i.Fresh(tagV1, blob, noon, time.Second) {
		t.Error("a tag from before the start is fresh")
	}
	i.Confirm(tagV1, blob, noon)
	if !i.Fresh(tagV1, blob, noon.Add(time.Second-1), time.Second) || i.Fresh(tagV1, blob, noon.Add(time.Second), time.Second) {
		t.Error("a tag is not fresh for a second")
	}
}

// TestMergeClamps checks that a time in the future, from the clock of another node, counts as now.
// Otherwise the entry would expire too late.
func TestMergeClamps(t *testing.T) {
	i, future := New(), noon.Add(1000*time.Hour)
	i.Merge(store.Contents{
		Blobs: map[digest.Digest]*store.Blob{
			blob:  {Size: 1, Used: future, Links: []store.Link{{Repository: "a"}}},
			other: {Size: 1, Used: noon.Add(-time.Hour)},
		},
		Tags: map[store.TagName]store.Tag{tagV1: {To: blob, Confirmed: future}},
	}, noon)
	if used := i.get(blob).Used; !used.Equal(noon) {
		t.Errorf("used at %s, want %s", used, noon)
	}
	if used := i.get(other).Used; !used.Equal(noon.Add(-time.Hour)) {
		t.Errorf("a time in the past became %s", used)
	}
	if tags := i.ExpiredTags(noon.Add(time.Second)); len(tags) != 1 {
		t.Errorf("expired tags: %v", tags)
	}
	if victims := i.Expired(noon.Add(time.Second)); len(victims) != 2 {
		t.Errorf("expired blobs: %v", victims)
	}
}

// TestMergeKeepsWhatIsNewer checks that Merge does not change entries that this process has used.
// They are evicted last.
func TestMergeKeepsWhatIsNewer(t *testing.T) {
	i := New()
	i.Use(blob, 10, noon)
	i.Link(blob, store.Link{Repository: "new"})
	i.Confirm(tagV1, blob, noon)
	if _, listed := i.Is(blob, false); listed {
		t.Error("the index is complete before Merge")
	}
	i.Merge(store.Contents{
		Blobs: map[digest.Digest]*store.Blob{
			blob:  {Size: 5, Partial: true, Links: []store.Link{{Repository: "old"}, {Repository: "new"}}},
			other: {Size: 7, Used: noon},
		},
		Tags: map[store.TagName]store.Tag{tagV1: {To: other}},
	}, noon)
	at := i.get(blob)
	if len(at.Links) != 2 || len(at.Tags) != 1 || at.Partial || !i.Fresh(tagV1, blob, noon, time.Second) {
		t.Errorf("the blob is %+v", at)
	}
	if _, bytes := i.Size(); bytes != 17 {
		t.Errorf("%d bytes, want 17", bytes)
	}
	if _, ok := i.Excess(1, 0)[other]; !ok {
		t.Error("what was not used since the start is not evicted first")
	}
	if _, listed := i.Is(blob, false); !listed {
		t.Error("the index is incomplete after Merge")
	}
}

// TestForget checks what remains of a blob whose file is missing.
func TestForget(t *testing.T) {
	for name, test := range map[string]struct {
		change      func(*Index)
		blobs       int
		bytes       int64
		links, tags int
	}{
		"nothing else":     {func(*Index) {}, 0, 0, 0, 0},
		"links":            {func(i *Index) { i.Link(blob, store.Link{Repository: "a"}) }, 1, 0, 1, 0},
		"tags":             {func(i *Index) { i.Confirm(tagV1, blob, noon) }, 1, 0, 0, 1},
		"a part":           {func(i *Index) { i.Left(blob, 4, noon) }, 1, 4, 0, 0},
		"stored meanwhile": {func(i *Index) { i.Use(blob, 10, noon.Add(time.Minute)) }, 1, 10, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			i := New()
			i.Use(blob, 10, noon)
			test.change(i)
			for range 2 {
				i.Forget(blob, noon.Add(time.Second))
			}
			at := i.get(blob)
			blobs, bytes := i.Size()
			if blobs != test.blobs || bytes != test.bytes || len(at.Links) != test.links || len(at.Tags) != test.tags {
				t.Errorf("%d blobs with %d bytes are left: %+v", blobs, bytes, at)
			}
		})
	}
}

// TestRestore checks that a blob that could not be removed counts again, and that a tag that moved
// meanwhile stays with its new manifest.
func TestRestore(t *testing.T) {
	i := emptyIndex()
	moved := store.TagName{Repository: "library/app", Tag: "latest"}
	i.Use(blob, 10, noon)
	i.Confirm(tagV1, blob, noon)
	i.Confirm(moved, blob, noon)
	victims := i.Excess(1, 0)
	i.Confirm(moved, other, noon)
	i.Restore(blob, victims[blob])
	i.Restore(blob, victims[blob])
	if blobs, bytes := i.Size(); blobs != 2 || bytes != 10 {
		t.Errorf("%d blobs with %d bytes", blobs, bytes)
	}
	if tags := i.get(blob).Tags; !slices.Equal(tags, []store.TagName{tagV1}) || i.tags[tagV1].to != blob {
		t.Errorf("the manifest lists %v", tags)
	}
	if i.tags[moved].to != other {
		t.Errorf("the moved tag refers to %s", i.tags[moved].to)
	}
}
