package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestServeAfterACrash: a cache that was killed right after a pull starts without its upstream,
// even on a volume that is full or read-only, and serves its stored content.
func TestServeAfterACrash(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, root string) (repair func() error){
		"killed":                         nil,
		"killed, and the volume is full": fillVolume,
		"killed, and the volume cannot be written": readOnly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := newOutage(t, false)
			image := upstream.push(t, "v1")
			cache, config := cacheOf(t, upstream, false)
			if damage != nil {
				cache.mount(t)
			}
			c := cache.start(t, config)
			cache.pull(t, image)
			cache.awaitStored(t, layers+1)
			c.kill(t)
			upstream.out.Store(true)
			if damage != nil {
				repair := damage(t, cache.storage)
				c = cache.start(t, config)
				if err := pull(parse(t, cache.url, image)); err != nil {
					t.Errorf("with a damaged volume: %v", err)
				}
				c.kill(t)
				if err := repair(); err != nil {
					t.Fatal(err)
				}
			}
			c = cache.start(t, config)
			if err := pull(parse(t, cache.url, image)); err != nil {
				t.Error(err)
			}
			if code, _, log := c.terminate(t); code != program.ExitFine {
				t.Fatalf("exit code %d:\n%s", code, log)
			}
		})
	}
}

// TestNothingStaysAfterTheTTL: nothing is left of an image that is no longer pulled, even if the
// cache was killed right after the pull.
func TestNothingStaysAfterTheTTL(t *testing.T) {
	t.Parallel()
	upstream := newOutage(t, false)
	image := upstream.push(t, "v1")
	cache, config := cacheOf(t, upstream, false)
	c := cache.start(t, config)
	cache.pull(t, image)
	cache.awaitStored(t, layers+1)
	c.kill(t)
	content, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	cache.start(t, writeConfig(t, strings.Replace(string(content), "ttl: 2h", "ttl: 1s", 1)))
	cache.waitUntil(t, "nothing is stored", func(context.Context) (bool, error) {
		var left []string
		for _, folder := range []string{"blobs", "repositories"} {
			entries, err := filepath.Glob(filepath.Join(cache.storage, "docker/registry/v2", folder, "*"))
			if err != nil {
				return false, err
			}
			left = append(left, entries...)
		}
		return len(left) == 0, nil
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
