package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestServeDamagedBlobs: if a crash has truncated or corrupted files, the next pull succeeds,
// because the cache fetches them again. It never serves content that does not match its digest: a
// node would request that content forever (containerd#9552).
func TestServeDamagedBlobs(t *testing.T) {
	t.Parallel()
	const objects = layers + 2 // plus config and manifest
	upstream := newOutage(t, false)
	image := upstream.push(t, "v1")
	cache, config := cacheOf(t, upstream, false)
	c := cache.start(t, config)
	cache.pull(t, image)
	cache.awaitSound(t, objects)

	for i, damage := range []func(t *testing.T, file string){cut, empty, overwrite} {
		for _, file := range cache.blobs(t) {
			damage(t, file)
		}
		cache.pull(t, image)
		cache.awaitSound(t, objects)
		// On a busy machine, a check of the previous round may still be running, and may also count the
		// damage of this round.
		counted, err := strconv.Atoi(cache.metric(t, "registry_storage_damaged_blobs_total"))
		if want := (i + 1) * objects; err != nil || counted < want {
			t.Errorf("the metric counts %d damaged blobs, want %d; error %v", counted, want, err)
		}
	}

	// Damage the files but keep their size and time: a cache that starts must trust neither.
	if code, _, log := c.terminate(t); code != program.ExitFine {
		t.Fatalf("exit code %d:\n%s", code, log)
	}
	for _, file := range cache.blobs(t) {
		before, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, file)
		if err := os.Chtimes(file, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	cache.start(t, config)
	cache.pull(t, image)
	cache.awaitSound(t, objects)
	upstream.out.Store(true)
	cache.pull(t, image)
}

func cut(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func empty(t *testing.T, file string) {
	t.Helper()
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
}

// overwrite changes one byte in the middle of the file.
func overwrite(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		content[len(content)/2] ^= 1
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// blobs returns the files of all stored blobs.
func (s *servedCache) blobs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.storage, "docker/registry/v2/blobs/sha256/*/*/data"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// awaitSound waits until the cache has stored the given number of blobs with the right content. The
// cache answers a pull before it has stored them.
func (s *servedCache) awaitSound(t *testing.T, blobs int) {
	t.Helper()
	s.awaitStored(t, layers+1)
	s.waitUntil(t, "all blobs are stored", func(context.Context) (bool, error) {
		files := s.blobs(t)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if sum := sha256.Sum256(content); err != nil || hex.EncodeToString(sum[:]) != filepath.Base(filepath.Dir(file)) {
				return false, nil //nolint:nilerr // checked again
			}
		}
		return len(files) == blobs, nil
	})
}
