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

// A cache whose files a crash has cut or spoilt fetches them anew with the same pull: nobody is served what does not match its
// digest (containerd#9552: a node would ask for it for ever).
func TestServeDamagedBlobs(t *testing.T) {
	t.Parallel()
	const objects = layers + 2 // and config and manifest
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
		// More where a check of the round before, for which nobody waits any more on a busy machine, meets the damage of this one.
		counted, err := strconv.Atoi(cache.metric(t, "registry_storage_damaged_blobs_total"))
		if want := (i + 1) * objects; err != nil || counted < want {
			t.Errorf("%d damaged blobs are counted, want %d; error %v", counted, want, err)
		}
	}

	// With the time and the size of before: a start trusts neither.
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

// overwrite changes one byte in the middle.
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

// blobs returns the files of all that is stored.
func (s *served) blobs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.storage, "docker/registry/v2/blobs/sha256/*/*/data"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// awaitSound waits until so many blobs are stored, each with the content of its digest: the cache answers before it has them.
func (s *served) awaitSound(t *testing.T, blobs int) {
	t.Helper()
	s.awaitStored(t, layers+1)
	s.eventually(t, "all blobs are stored", func(context.Context) (bool, error) {
		files := s.blobs(t)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if sum := sha256.Sum256(content); err != nil || hex.EncodeToString(sum[:]) != filepath.Base(filepath.Dir(file)) {
				return false, nil //nolint:nilerr // it is looked at again
			}
		}
		return len(files) == blobs, nil
	})
}
