package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestServeAfterACrash: a cache that was killed right after a pull starts without its upstream,
// even if its record of when to delete what (the state) is lost or damaged. The cache serves its
// stored content, and records again when to delete that content (distribution#4478).
func TestServeAfterACrash(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state func(file string) error
		// volume damages the volume of the cache and returns a function that repairs it. The state is
		// complete only after another start on the repaired volume.
		volume func(t *testing.T, root string) (repair func() error)
	}{
		"killed":                   {state: func(string) error { return nil }},
		"its state is empty":       {state: func(file string) error { return os.WriteFile(file, nil, 0o600) }},
		"its state has no entries": {state: func(file string) error { return os.WriteFile(file, []byte("null"), 0o600) }},
		"its state is empty and the volume full": {
			state: func(file string) error { return os.WriteFile(file, nil, 0o600) }, volume: fillVolume,
		},
		"its state is empty and the volume cannot be written": {
			state: func(file string) error { return os.WriteFile(file, nil, 0o600) }, volume: readOnly,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := newOutage(t, false)
			image := upstream.push(t, "v1")
			cache, config := cacheOf(t, upstream, false)
			if test.volume != nil {
				cache.mount(t)
			}
			want := upstream.entries(t, image)
			c := cache.start(t, config)
			cache.pull(t, image)
			cache.awaitStored(t, layers+1)
			c.kill(t)
			if maps.Equal(cache.entries(t), want) {
				cache.loseState(t)
			}
			if err := test.state(cache.state()); err != nil {
				t.Fatal(err)
			}

			upstream.out.Store(true)
			if test.volume != nil {
				repair := test.volume(t, cache.storage)
				c = cache.start(t, config)
				if err := pull(parse(t, cache.url, image)); err != nil {
					t.Errorf("with a read-only volume: %v", err)
				}
				c.kill(t)
				if err := repair(); err != nil {
					t.Fatal(err)
				}
			}
			c = cache.start(t, config)
			if got := cache.entries(t); !maps.Equal(got, want) {
				t.Errorf("the state has\n%v, want\n%v", got, want)
			}
			if err := pull(parse(t, cache.url, image)); err != nil {
				t.Error(err)
			}
			if code, _, log := c.terminate(t); code != program.ExitFine {
				t.Fatalf("exit code %d:\n%s", code, log)
			}
			if got := cache.entries(t); !maps.Equal(got, want) {
				t.Errorf("distribution reads the state as\n%v, want\n%v", got, want)
			}
		})
	}
}

// loseState removes the state, as if the cache had been killed before it saved the state. A cache
// saves after 5 s, so on a very slow machine it has already saved.
func (s *servedCache) loseState(t *testing.T) {
	t.Helper()
	if err := os.Remove(s.state()); err != nil {
		t.Fatal(err)
	}
}

// TestCollectAfterACrash: content stored right before the cache was killed is deleted when its TTL
// ends.
func TestCollectAfterACrash(t *testing.T) {
	t.Parallel()
	upstream := newOutage(t, false)
	image := upstream.push(t, "v1")
	cache, config := cacheOf(t, upstream, false)
	c := cache.start(t, config)
	cache.pull(t, image)
	cache.awaitStored(t, layers+1)
	c.kill(t)
	if len(cache.entries(t)) > 0 {
		cache.loseState(t)
	}
	content, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	cache.start(t, writeConfig(t, strings.Replace(string(content), "ttl: 2h", "ttl: 1s", 1)))
	cache.awaitStored(t, 0)
	cache.waitUntil(t, "blobs are gone", func(context.Context) (bool, error) {
		files, err := filepath.Glob(filepath.Join(cache.storage, "docker/registry/v2/blobs/sha256/*/*/data"))
		return len(files) <= 1, err // distribution does not delete manifests
	})
}

// kill kills the process without a warning, as a power loss of the node would.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.drain()
	<-c.rest
	_ = c.cmd.Wait()
}

func (s *servedCache) state() string { return filepath.Join(s.storage, "scheduler-state.json") }

// entries returns the entries in scheduler-state.json: the type of each blob (0) and manifest (1),
// by repository and digest.
func (s *servedCache) entries(t *testing.T) map[string]int {
	t.Helper()
	content, err := os.ReadFile(s.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]struct {
		Key       string
		EntryType int
	}
	if err := json.Unmarshal(content, &state); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	types := map[string]int{}
	for key, entry := range state {
		if key != entry.Key {
			t.Errorf("%s is the entry of %s", key, entry.Key)
		}
		types[key] = entry.EntryType
	}
	return types
}

// entries returns the entries that scheduler-state.json must have after a pull of the image: the
// type of each blob and manifest, by repository and digest.
func (o *outage) entries(t *testing.T, reference string) map[string]int {
	t.Helper()
	image, err := remote.Image(parse(t, o.URL, reference))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]int{repository + "@" + digest.String(): 1, repository + "@" + manifest.Config.Digest.String(): 0}
	for _, layer := range manifest.Layers {
		types[repository+"@"+layer.Digest.String()] = 0
	}
	return types
}

// mount gives the cache its own volume.
func (s *servedCache) mount(t *testing.T) {
	t.Helper()
	if err := unix.Mount("crash-test", s.storage, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("a small volume needs privileges: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(s.storage, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func fillVolume(t *testing.T, root string) (repair func() error) {
	t.Helper()
	name := filepath.Join(root, "filler")
	filler, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4<<10))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := filler.Close(); err != nil {
		t.Fatal(err)
	}
	return func() error { return os.Remove(name) }
}

func readOnly(t *testing.T, root string) (repair func() error) {
	t.Helper()
	remount := func(flags uintptr) error { return unix.Mount("", root, "", unix.MS_REMOUNT|flags, "") }
	if err := remount(unix.MS_RDONLY); err != nil {
		t.Fatal(err)
	}
	return func() error { return remount(0) }
}
