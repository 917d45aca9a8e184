package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// objects is an upstream that serves the added objects.
type objects struct {
	mu      sync.Mutex
	content map[string][]byte // by path below the repository
}

// Away implements Upstream.
func (o *objects) Away(string, string) error { return nil }

// Do implements Upstream.
func (o *objects) Do(_ context.Context, _, _, path string, _ http.Header) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	content, ok := o.content[path]
	if !ok {
		return nil, &upstream.RefusedError{Status: http.StatusNotFound}
	}
	return &http.Response{
		StatusCode: http.StatusOK, ContentLength: int64(len(content)), Body: io.NopCloser(bytes.NewReader(content)),
		Header: http.Header{"Content-Type": {v1.MediaTypeImageManifest}, "Docker-Content-Digest": {digest.FromBytes(content).String()}},
	}, nil
}

func (o *objects) add(path string, content []byte) digest.Digest {
	o.mu.Lock()
	defer o.mu.Unlock()
	blob := digest.FromBytes(content)
	if path == "" {
		path = "blobs/" + blob.String()
	}
	o.content[path] = content
	return blob
}

// clock is the clock of a cache under test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) get() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newTestCache(t *testing.T, o Options) (*testCache, *objects, *clock) {
	t.Helper()
	folder := ""
	registry, now := &objects{content: map[string][]byte{}}, &clock{now: time.Now()}
	if o.Store == nil {
		var err error
		folder = t.TempDir()
		if err = unix.Mount("cache-test", folder, "tmpfs", 0, ""); err == nil { // these tests write many files
			t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
		}
		if o.Store, err = store.New(folder, false); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.Store.Close() })
	}
	o.Upstream = registry
	c := &testCache{New(o), folder}
	c.now = now.get
	c.index.Merge(store.Contents{}, now.get())
	t.Cleanup(c.Close)
	return c, registry, now
}

// testCache is a cache and its volume.
type testCache struct {
	*Cache
	folder string
}

// settle waits until all downloads have ended.
func (c *testCache) settle() {
	c.ended.Wait()
}

// pull pulls an image with one layer. Its content depends on number.
func (c *testCache) pull(t *testing.T, upstream *objects, repository string, number uint64, size int) {
	t.Helper()
	content := make([]byte, size)
	binary.LittleEndian.PutUint64(content, number)
	layer := upstream.add("", content)
	tag := fmt.Sprintf("v%d", number)
	upstream.add("manifests/"+tag, fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"layers":[{"digest":%q}]}`, v1.MediaTypeImageManifest, layer))
	if _, err := c.Tag(t.Context(), Query{Repository: repository}, tag); err != nil {
		t.Fatal(err)
	}
	blob, err := c.Blob(t.Context(), Query{Repository: repository}, layer)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = blob.Close() }()
	if blob.File != nil {
		return
	}
	if err := blob.Copy(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
}

// files counts the files and folders of the volume.
func (c *testCache) files(t *testing.T) (n int, size int64) {
	t.Helper()
	err := filepath.WalkDir(c.folder, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // evicted during the walk
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !entry.IsDir() {
			size += info.Size()
		}
		n++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, size
}

var images = flag.Uint64("images", 50, "images a day of TestNothingIsLeft")

// TestNothingIsLeft: after 90 days with new images each day, only the files of the last TTL remain.
func TestNothingIsLeft(t *testing.T) {
	const ttl = 7 * 24 * time.Hour
	c, upstream, now := newTestCache(t, Options{TTL: ttl})
	var month int
	for day := range uint64(90) {
		for image := range *images {
			c.pull(t, upstream, fmt.Sprintf("team-%d/app", image%10), day**images+image, 100)
		}
		clear(upstream.content)
		c.settle()
		now.forward(24 * time.Hour)
		for c.expire() {
		}
		if day == 29 {
			month, _ = c.files(t)
		}
	}
	if files, _ := c.files(t); files > month {
		t.Errorf("%d files after 90 days, %d after 30", files, month)
	}
	now.forward(ttl + time.Hour)
	for c.expire() {
	}
	if files, _ := c.files(t); files > 20 {
		t.Errorf("%d files and folders are left although no image is", files)
	}
}

// TestLimit: the limit is never exceeded, the least recently used blobs are evicted first, and used
// ones stay.
func TestLimit(t *testing.T) {
	const size, limit = 1 << 20, 10 << 20
	c, upstream, _ := newTestCache(t, Options{Limit: func() int64 { return limit }})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	for number := range uint64(40) {
		c.pull(t, upstream, "library/app", number, size)
		c.pull(t, upstream, "library/app", 0, size) // used all the time
		if _, stored := c.files(t); stored > limit+size {
			t.Fatalf("%d bytes are stored, the limit is %d", stored, limit)
		}
	}
	clear(upstream.content)
	c.requireStored(t, 0, size)
	if blobs, stored := c.index.Size(); stored > limit || stored < limit-2*size || blobs < 10 {
		t.Errorf("the index contains %d blobs with %d bytes", blobs, stored)
	}
}

// requireStored fails the test unless the layer of an image is stored.
func (c *testCache) requireStored(t *testing.T, number uint64, size int) {
	t.Helper()
	content := make([]byte, size)
	binary.LittleEndian.PutUint64(content, number)
	blob, err := c.Blob(t.Context(), Query{Repository: "library/app"}, digest.FromBytes(content))
	if err != nil || blob.From != FromVolume {
		t.Fatalf("a blob in use was evicted: %v", err)
	}
	_ = blob.Close()
}

// TestEvictionHoldsUpNobody checks that during an eviction of 4,000 blobs, nine of ten requests
// take at most 100 ms or, on a busy machine, ten times as long as before the eviction.
func TestEvictionHoldsUpNobody(t *testing.T) {
	const ttl = time.Hour
	c, upstream, now := newTestCache(t, Options{TTL: ttl})
	for number := range uint64(4_000) {
		content := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"number":%d}`, v1.MediaTypeImageManifest, number)
		m := Manifest{Digest: digest.FromBytes(content), MediaType: v1.MediaTypeImageManifest, Content: content}
		if !c.keep("library/app", m) {
			t.Fatal("a manifest is not stored")
		}
	}
	now.forward(2 * ttl)
	number := uint64(20_000)
	request := func() time.Duration {
		start := time.Now()
		c.pull(t, upstream, "library/app", number, 100)
		number++
		return time.Since(start)
	}
	var before, during []time.Duration
	for range 100 {
		before = append(before, request())
	}
	slices.Sort(before)
	bound := max(100*time.Millisecond, 10*before[len(before)/2])
	ctx, stop := context.WithCancel(t.Context())
	evicted := make(chan struct{})
	go func() {
		defer close(evicted)
		for ctx.Err() == nil && c.expire() {
		}
	}()
	defer stop()
	for running := true; running; {
		during = append(during, request())
		select {
		case <-evicted:
			running = false
		default:
		}
	}
	slices.Sort(during)
	n := len(during)
	t.Logf("of %d requests, the slowest took %s", n, during[n-1])
	if late := during[(n-1)*9/10]; late > bound || n < 20 {
		t.Errorf("of %d requests, one in ten took longer than %s, at most %s wanted", n, late, bound)
	}
}

// TestFrequentUseIsRecorded: after a restart, a blob that was always in use must not look old.
func TestFrequentUseIsRecorded(t *testing.T) {
	c, upstream, now := newTestCache(t, Options{TTL: time.Hour})
	for range 30 {
		now.forward(recorded * 4 / 5)
		c.pull(t, upstream, "library/app", 1, 100)
		c.settle()
	}
	found, err := c.options.Store.Contents(t.Context())
	if err != nil || len(found.Blobs) != 2 {
		t.Fatalf("the volume contains %d blobs, %v", len(found.Blobs), err)
	}
	for name, blob := range found.Blobs {
		if ago := now.get().Sub(blob.Used); ago > recorded {
			t.Errorf("the last use of %s was recorded %s ago, want at most %s", name, ago, recorded)
		}
	}
}

// TestWakeUp: after a hibernation all content is overdue. Requested content is served at once, and
// stays.
func TestWakeUp(t *testing.T) {
	const ttl, overdue = 24 * time.Hour, 5_000
	c, upstream, now := newTestCache(t, Options{TTL: ttl})
	for number := range uint64(overdue) {
		content := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"number":%d}`, v1.MediaTypeImageManifest, number)
		m := Manifest{Digest: digest.FromBytes(content), MediaType: v1.MediaTypeImageManifest, Content: content}
		if !c.keep("library/app", m) {
			t.Fatal("a manifest is not stored")
		}
	}
	c.pull(t, upstream, "library/needed", overdue+1, 100)
	c.settle()

	woken, upstream, later := newTestCache(t, Options{TTL: ttl, Store: c.options.Store})
	later.now = now.get().Add(30 * 24 * time.Hour)
	found, err := woken.options.Store.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	woken.index.Merge(found, later.get())
	start := time.Now()
	content := make([]byte, 100)
	binary.LittleEndian.PutUint64(content, overdue+1)
	blob, err := woken.Blob(t.Context(), Query{Repository: "library/needed"}, digest.FromBytes(content))
	served := time.Since(start)
	if err != nil || blob.From != FromVolume {
		t.Fatalf("the blob that a node asks for after the start: %v", err)
	}
	_ = blob.Close()
	for start = time.Now(); woken.expire(); {
	}
	if all := time.Since(start); served > all/4 {
		t.Errorf("the blob that a node asks for after the start is served after %s, the eviction of everything takes %s", served, all)
	}
	if blobs, _ := woken.index.Size(); blobs != 1 {
		t.Errorf("%d blobs are left, want the one that was asked for", blobs)
	}
	if len(upstream.content) != 0 {
		t.Error("unexpected objects")
	}
	if file, err := woken.options.Store.Open(digest.FromBytes(content)); err != nil {
		t.Error(err)
	} else {
		_ = file.Close()
	}
}
