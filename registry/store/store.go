package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/opencontainers/go-digest"
)

// ErrNotStored says that the volume does not have a blob or tag.
var ErrNotStored = fs.ErrNotExist

// Store is the volume of one cache. Its methods may be called at the same time.
type Store struct {
	root   *os.Root
	checks checks
}

// New opens the volume in directory, which must exist. Unless owned is set, it refuses the volume
// of a registry that is not known to be a cache's: what is pushed there must not expire.
func New(directory string, owned bool) (*Store, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("opening the volume: %w", err)
	}
	s := &Store{root: root, checks: checks{slots: make(chan struct{}, checksAtOnce)}}
	if !owned && s.has(layout) && !s.has(own) && !s.has(stockState) {
		_ = root.Close()
		return nil, &NotCacheError{directory}
	}
	_ = root.MkdirAll(partials, 0o755)           // a volume that cannot be written is served all the same
	left, _ := fs.Glob(root.FS(), temporary+"*") // by an interrupted write
	for _, name := range left {
		_ = root.Remove(name)
	}
	return s, nil
}

// NotCacheError says that a folder has the content of a registry that may not be a cache.
type NotCacheError struct{ Directory string }

// Error implements error.
func (e *NotCacheError) Error() string {
	return fmt.Sprintf("%s has the content of a registry, but neither a folder %s nor a file %s of a cache: use an empty folder, "+
		"or set cache.owned if this is the folder of a cache without a TTL", e.Directory, own, stockState)
}

// UsageError marks the error: another start with this configuration fails, too.
func (e *NotCacheError) UsageError() {}

func (s *Store) has(name string) bool {
	_, err := s.root.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// Close closes the volume. Opened blobs stay readable.
func (s *Store) Close() error { return s.root.Close() }

// Open opens a blob and returns its size. It returns ErrNotStored also for a damaged blob, which it
// removes: after a start and after each change of the file, Open compares content and digest. A
// blob that takes longer than checkPatience to read is returned before the end of its check.
func (s *Store) Open(ctx context.Context, blob digest.Digest) (*os.File, int64, error) {
	file, info, err := s.open(blob)
	if err != nil {
		return nil, 0, fmt.Errorf("opening blob %s: %w", blob, err)
	}
	if err := s.check(ctx, blob, info); err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

func (s *Store) open(blob digest.Digest) (*os.File, fs.FileInfo, error) {
	file, err := s.root.Open(blobFile(blob))
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// Used records that a blob is used now: the access time of its file survives a restart.
func (s *Store) Used(blob digest.Digest, now time.Time) error {
	if err := s.root.Chtimes(blobFile(blob), now, time.Time{}); err != nil {
		return fmt.Errorf("recording the use of blob %s: %w", blob, err)
	}
	return nil
}

// Link is how a repository has a blob.
type Link struct {
	Repository string
	Manifest   bool
}

// Link writes the link of a blob, unless it exists and is undamaged. A stock image does not serve a
// blob of a repository without a link.
func (s *Store) Link(blob digest.Digest, l Link) error { return s.writeLink(linkFile(blob, l), blob) }

func (s *Store) writeLink(file string, blob digest.Digest) error {
	if content, err := s.root.ReadFile(file); err == nil && string(content) == blob.String() {
		return nil
	}
	return s.write(file, []byte(blob.String()))
}

// Write stores a small blob. The caller has verified the content.
func (s *Store) Write(blob digest.Digest, content []byte) error {
	if err := s.write(blobFile(blob), content); err != nil {
		return fmt.Errorf("storing blob %s: %w", blob, err)
	}
	if info, err := s.root.Stat(blobFile(blob)); err == nil {
		s.checks.pass(blob, info)
	}
	return nil
}

func (s *Store) write(file string, content []byte) error {
	name := temporary + rand.Text()
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = s.place(name, file)
	}
	if err != nil {
		_ = s.root.Remove(name)
	}
	return err
}

// place moves a file to where it is found. Remove may remove the empty folder in between, so place
// tries more than once.
func (s *Store) place(from, to string) (err error) {
	for range 3 {
		if err = s.root.MkdirAll(path.Dir(to), 0o755); err == nil {
			err = s.root.Rename(from, to)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// Remove removes a blob with its links and the tags that refer to it, and the folders that are
// empty then. A blob that is open stays readable. What does not exist is no error.
func (s *Store) Remove(blob digest.Digest, of Blob) error {
	s.checks.passed.Delete(blob)
	var failed []error
	for _, l := range of.Links {
		failed = append(failed, s.removeUpTo(path.Dir(linkFile(blob, l)), repositories))
	}
	for _, t := range of.Tags {
		folder := path.Dir(indexFile(t, blob)) // what a tag once referred to
		if to, err := s.Tag(t); err != nil || to == blob {
			folder = tagDir(t)
		}
		failed = append(failed, s.removeUpTo(folder, repositories))
	}
	if err := errors.Join(append(failed, s.removeUpTo(blobDir(blob), blobs))...); err != nil {
		return fmt.Errorf("removing blob %s: %w", blob, err)
	}
	return nil
}

// removeUpTo removes a folder with its content, then its parents below top while they are empty.
func (s *Store) removeUpTo(folder, top string) error {
	if err := s.root.RemoveAll(folder); err != nil {
		return err
	}
	for parent := path.Dir(folder); parent != top && s.root.Remove(parent) == nil; {
		parent = path.Dir(parent)
	}
	return nil // the last folder is not empty, or already removed
}
