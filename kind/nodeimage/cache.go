package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/lock"
)

const (
	lockFile = "lock"
	tempDir  = "tmp"
	// lockTimeout is longer than a build from nothing takes on a small machine.
	lockTimeout = 40 * time.Minute
	removeRetry = 500 * time.Millisecond
	// keepUnused is how long an entry that no build uses any more stays, for someone who goes back to an earlier commit.
	keepUnused = 14 * 24 * time.Hour
)

// cache keeps built files and folders by content key, so that an interrupted build resumes where it was. Entries
// appear by rename: one that is there is whole.
type cache struct {
	dir    string
	unlock func()
}

// openCache opens the cache for one build: it waits, as long as ctx lasts, for another process that builds, and
// removes what a killed build left behind. Close it.
func openCache(ctx context.Context, dir string) (*cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the build cache: %w", err)
	}
	unlock, err := lock.Wait(ctx, filepath.Join(dir, lockFile), lockTimeout)
	if err != nil {
		return nil, fmt.Errorf("waiting for another build of the node image to end: %w", err)
	}
	c := &cache{dir: dir, unlock: unlock}
	if err := errors.Join(c.removeTemp(ctx), os.Mkdir(c.temp(), 0o755)); err != nil {
		unlock()
		return nil, fmt.Errorf("removing the rest of an interrupted build: %w", err)
	}
	return c, nil
}

// temp returns the folder for unfinished work; it is emptied when the cache is opened and closed.
func (c *cache) temp() string { return filepath.Join(c.dir, tempDir) }

// removeTemp removes unfinished work. Commands of a killed build may outlive it for a moment and write on.
func (c *cache) removeTemp(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, removeRetry, cleanUpTime, true, func(context.Context) (bool, error) {
		last = os.RemoveAll(c.temp())
		return last == nil, nil
	})
	if last != nil {
		return last
	}
	return err
}

// has tells whether the entry was built before.
func (c *cache) has(entry string) bool {
	_, err := os.Stat(filepath.Join(c.dir, entry))
	return err == nil
}

// path is where the entry lies, or will lie.
func (c *cache) path(entry string) string { return filepath.Join(c.dir, entry) }

// produce runs build, which writes the entry (a file or a folder) to the path that it is given, and then puts it in place.
func (c *cache) produce(entry string, build func(path string) error) error {
	unfinished := filepath.Join(c.temp(), entry)
	if err := build(unfinished); err != nil {
		return err
	}
	if err := syncTree(unfinished); err != nil {
		return fmt.Errorf("writing %s to disk: %w", entry, err)
	}
	return os.Rename(unfinished, c.path(entry))
}

// close removes unfinished work, also when ctx is done, and gives up the lock.
func (c *cache) close(ctx context.Context) error {
	defer c.unlock()
	return c.removeTemp(context.WithoutCancel(ctx))
}

// use marks the entry as used now and returns its path.
func (c *cache) use(entry string) (string, error) {
	now := time.Now()
	return c.path(entry), os.Chtimes(c.path(entry), now, now)
}

// prune removes the entries that nothing has used since the given time.
func (c *cache) prune(since time.Time) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != lockFile && name != tempDir {
			err = errors.Join(err, removeOlder(c.path(name), since))
		}
	}
	return err
}

func removeOlder(path string, since time.Time) error {
	info, err := os.Stat(path)
	if err != nil || !info.ModTime().Before(since) {
		return err
	}
	return os.RemoveAll(path)
}

// syncTree makes the content of a file, or of each file in a folder, durable before a rename announces it.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}
