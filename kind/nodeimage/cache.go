package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

const (
	lockFile = "lock"
	tempDir  = "tmp"
	// lockTimeout is longer than a full build on a small machine.
	lockTimeout = 40 * time.Minute
	// keepUnused is how long an unused entry is kept, so that going back to an earlier commit is fast.
	keepUnused = 14 * 24 * time.Hour
)

// cache is the build cache. It keeps built files and folders, so that an interrupted build can
// resume. Entries appear by rename and are therefore complete.
type cache struct {
	dir    string
	unlock func()
}

// openCache opens the cache for one build. It waits until no other process builds, or until ctx
// ends. It removes the files that a killed build left. The caller must close the cache.
func openCache(ctx context.Context, dir string) (*cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the build cache: %w", err)
	}
	unlock, err := file.Lock(ctx, filepath.Join(dir, lockFile), lockTimeout)
	if err != nil {
		return nil, fmt.Errorf("wait for another build of the node image to end: %w", err)
	}
	c := &cache{dir: dir, unlock: unlock}
	if err := errors.Join(os.RemoveAll(c.temp()), os.Mkdir(c.temp(), 0o755)); err != nil {
		unlock()
		return nil, fmt.Errorf("remove what an interrupted build left: %w", err)
	}
	return c, nil
}

// temp returns the folder for unfinished work. openCache and cache.close remove its content.
func (c *cache) temp() string { return filepath.Join(c.dir, tempDir) }

func (c *cache) has(entry string) bool {
	_, err := os.Stat(c.path(entry))
	return err == nil
}

func (c *cache) path(entry string) string { return filepath.Join(c.dir, entry) }

// produce calls build(path) with a temporary path, and renames the result to the entry.
func (c *cache) produce(entry string, build func(path string) error) error {
	unfinished := filepath.Join(c.temp(), entry)
	if err := build(unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, c.path(entry))
}

// close removes unfinished work, and releases the lock.
func (c *cache) close() {
	_ = os.RemoveAll(c.temp()) // the next build removes what a command still writes
	c.unlock()
}

// use marks the entry as used now and returns its path.
func (c *cache) use(entry string) (string, error) {
	now := time.Now()
	return c.path(entry), os.Chtimes(c.path(entry), now, now)
}

// prune removes the entries that have not been used since the given time.
func (c *cache) prune(since time.Time) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, infoErr := entry.Info()
		if name := entry.Name(); infoErr == nil && name != lockFile && name != tempDir && info.ModTime().Before(since) {
			infoErr = os.RemoveAll(c.path(name))
		}
		err = errors.Join(err, infoErr)
	}
	return err
}
