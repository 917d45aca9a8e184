package registry

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mount returns a folder with its own small file system.
func mount(t *testing.T, options string) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("registry-test", folder, "tmpfs", 0, options); err != nil {
		t.Skipf("a small volume needs privileges: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// TestUnusableVolume: no pull fails because of the volume, and the cache stores blobs again when
// the volume is repaired.
func TestUnusableVolume(t *testing.T) {
	for name, test := range map[string]struct {
		options string
		spoil   func(t *testing.T, volume string) (repair func())
	}{
		"full": {"size=24m", func(t *testing.T, volume string) func() {
			t.Helper()
			filler := filepath.Join(volume, "filler")
			if err := os.WriteFile(filler, make([]byte, 23<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			return func() { _ = os.Remove(filler) }
		}},
		"full during the pull": {"size=40m", func(t *testing.T, volume string) func() {
			t.Helper()
			filler := filepath.Join(volume, "filler")
			go func() {
				for range 40 {
					<-time.After(5 * time.Millisecond)
					file, err := os.OpenFile(filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
					if err == nil {
						_, _ = file.Write(make([]byte, 1<<20))
						_ = file.Close()
					}
				}
			}()
			return func() { _ = os.Remove(filler) }
		}},
		"out of inodes": {"size=64m,nr_inodes=200", func(t *testing.T, volume string) func() {
			t.Helper()
			folder := filepath.Join(volume, "filler")
			err := os.Mkdir(folder, 0o700)
			for n := 0; err == nil; n++ {
				err = os.WriteFile(filepath.Join(folder, time.Now().String()), nil, 0o600)
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			return func() { _ = os.RemoveAll(folder) }
		}},
		"read-only": {"size=64m", func(t *testing.T, volume string) func() {
			t.Helper()
			remount := func(flags uintptr) {
				await(t, "the volume is mounted again", func() bool { // fails while a file is open for writing
					return unix.Mount("", volume, "", unix.MS_REMOUNT|flags, "") == nil
				})
			}
			remount(unix.MS_RDONLY)
			return func() { remount(0) }
		}},
		"its folders are gone": {"size=64m", func(t *testing.T, volume string) func() {
			t.Helper()
			for _, folder := range []string{"docker", "registry-cache"} {
				if err := os.RemoveAll(filepath.Join(volume, folder)); err != nil {
					t.Fatal(err)
				}
			}
			return func() {}
		}},
	} {
		t.Run(name, func(t *testing.T) { useUnusable(t, mount(t, test.options), test.spoil) })
	}
}

// useUnusable pulls from a cache whose volume becomes unusable, and is then repaired.
func useUnusable(t *testing.T, volume string, spoil func(t *testing.T, volume string) (repair func())) {
	t.Helper()
	u := newTestUpstream(t, false)
	before, image, after := u.push(t, "v1", 1, 100<<10), u.push(t, "v2", 2, 8<<20), u.push(t, "v3", 1, 100<<10)
	cache := newTestServer(t, u, volume)
	await(t, "the first image is stored", func() bool { cache.pullAsANode(t, u, before); return cache.stored(t) == 2 })
	u.forget()
	repair := spoil(t, volume)
	for range 3 {
		var nodes sync.WaitGroup
		for range 8 {
			nodes.Go(func() { cache.pullAsANode(t, u, image) })
		}
		nodes.Go(func() { cache.pullAsANode(t, u, before) })
		nodes.Wait()
	}
	if u.asked("GET /v2/"+repositoryName+"/blobs/") == 0 {
		t.Error("the cache sent no request, so this proves nothing")
	}
	repair()
	await(t, "the cache stores again", func() bool {
		cache.pullAsANode(t, u, after)
		u.forget()
		cache.pullAsANode(t, u, after)
		return u.asked(http.MethodGet+" /v2/"+repositoryName) == 0 && u.direct.Load() == 0
	})
}
