package cache

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/registry/store"
)

// run evicts in the background until the end of the test.
func (c *testCache) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
}

// TestReserve checks that nothing is evicted for a download that has already reserved its room, or
// for a second one that cannot fit next to it.
func TestReserve(t *testing.T) {
	for name, test := range map[string]struct {
		limit, first, second int64
		want                 bool
	}{
		"room for both":          {0, 30 << 20, 2000, true},
		"no room for the second": {0, 30 << 20, 31 << 20, false},
		"limit":                  {56 << 20, 30 << 20, 31 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := unix.Mount("cache-test", folder, "tmpfs", 0, "size=64m"); err != nil {
				t.Skipf("a small volume needs privileges: %v", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
			s, err := store.New(folder, false)
			if err != nil {
				t.Fatal(err)
			}
			c, upstream, _ := newTestCache(t, Options{Store: s, Limit: func() int64 { return test.limit }})
			c.run(t)
			for n := range uint64(20) { // 20 MiB
				c.pull(t, upstream, "library/app", n, 1<<20)
			}
			c.settle()
			_, before := c.index.Size()
			room, ok := c.reserve(test.first)
			if !ok {
				t.Fatal("the first file gets no room")
			}
			defer room.release()
			if err := os.WriteFile(filepath.Join(folder, "file"), make([]byte, test.first), 0o600); err != nil {
				t.Fatal(err)
			}
			room.wrote(test.first)
			if _, ok := c.reserve(test.second); ok != test.want {
				t.Errorf("room for the second: %t", ok)
			}
			if _, after := c.index.Size(); after != before {
				t.Errorf("%d of %d bytes are left", after, before)
			}
		})
	}
}

// nearlyFull returns a cache with 58 blobs of 1 MiB on a volume of 64 MiB.
func nearlyFull(t *testing.T) (*testCache, *objects) {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("cache-test", folder, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("a small volume needs privileges: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	s, err := store.New(folder, false)
	if err != nil {
		t.Fatal(err)
	}
	c, upstream, _ := newTestCache(t, Options{Store: s})
	for n := range uint64(58) { // of 64 MiB
		c.pull(t, upstream, "library/app", n, 1<<20)
	}
	c.settle()
	return c, upstream
}

// TestReserveOfInodes checks that a reservation and the background eviction keep 5 % of the inodes
// free.
func TestReserveOfInodes(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("cache-test", folder, "tmpfs", 0, "size=64m,nr_inodes=1000"); err != nil {
		t.Skipf("a small volume needs privileges: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	s, err := store.New(folder, false)
	if err != nil {
		t.Fatal(err)
	}
	c, _, _ := newTestCache(t, Options{Store: s})
	for _, test := range []struct {
		free           int64
		fits, evicting bool
	}{{70, true, false}, {40, false, true}} {
		for n := 0; ; n++ {
			space, err := s.Space()
			if err != nil || space.FreeInodes <= test.free {
				break
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(test.free, "-", n)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if fits := c.fits(); fits != test.fits {
			t.Errorf("with %d of 1000 inodes free, a file fits: %t", test.free, fits)
		}
		if _, files, err := c.short(0, 2*reserve); err != nil || files > 0 != test.evicting {
			t.Errorf("with %d of 1000 inodes free, %d files must be evicted in the background: %v", test.free, files, err)
		}
	}
}

// TestReserveBesideReaders checks that blobs with readers are not evicted. That would free no space
// until the readers finish, so one download would evict everything.
func TestReserveBesideReaders(t *testing.T) {
	c, upstream := nearlyFull(t)
	var read []*Blob
	for path := range upstream.content {
		if of, ok := strings.CutPrefix(path, "blobs/"); ok {
			found, err := c.Blob(t.Context(), query, digest.Digest(of))
			if err != nil || found.File == nil {
				t.Fatalf("%s is not stored: %v", of, err)
			}
			read = append(read, found)
		}
	}
	c.run(t)
	_, before := c.index.Size()
	if _, ok := c.reserve(10 << 20); ok {
		t.Error("there is room for 10 MiB")
	}
	if _, after := c.index.Size(); after < before-1<<20 { // manifests may be evicted
		t.Errorf("%d of %d bytes are left", after, before)
	}
	for _, one := range read {
		_ = one.Close()
	}
	room, ok := c.reserve(10 << 20)
	for n := 0; !ok && n < 20; n++ { // the machine may be busy
		room, ok = c.reserve(10 << 20)
	}
	if !ok {
		t.Error("there is no room for 10 MiB without readers")
	}
	room.release()
}

// TestReserveTogether checks that concurrent downloads, such as those of an image's layers, all
// find room if enough can be evicted. None gives up because another one is waiting.
func TestReserveTogether(t *testing.T) {
	c, _ := nearlyFull(t)
	c.run(t)
	var downloads sync.WaitGroup
	together, got := make(chan struct{}), make(chan *room, 20)
	for range 20 {
		downloads.Go(func() {
			<-together
			start := time.Now()
			room, ok := c.reserve(2 << 20)
			if !ok && time.Since(start) < roomPatience { // the machine may be busy
				t.Error("there is no room for 2 MiB beside others")
			}
			got <- room
		})
	}
	close(together)
	downloads.Wait()
	for range 20 {
		(<-got).release()
	}
	c.requireNoRoom(t, &answers{})
}

// endless is an upstream with endless blobs of unknown length.
type endless struct{ *objects }

// Do implements Upstream.
func (endless) Do(context.Context, string, string, string, http.Header) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{}, Body: io.NopCloser(zeros{})}, nil
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestEndlessBody checks that an endless body fills only a part of the volume.
func TestEndlessBody(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("cache-test", folder, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("a small volume needs privileges: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	s, err := store.New(folder, false)
	if err != nil {
		t.Fatal(err)
	}
	c, upstream, _ := newTestCache(t, Options{Store: s})
	c.run(t)
	for n := range uint64(20) { // 20 MiB
		c.pull(t, upstream, "library/app", n, 1<<20)
	}
	c.settle()
	_, before := c.index.Size()
	c.options.Upstream = endless{upstream}
	blob := digest.FromString("endless")
	if _, err := c.fetch(t.Context(), store.Link{Repository: "library/app"}, blob); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if _, after := c.index.Size(); after < before || !c.passes(blob) {
		t.Errorf("%d of %d bytes are left, the blob passes: %t", after, before, c.passes(blob))
	}
}
