// Package store implements the volume of one cache, in distribution's layout, so that a stock image
// can serve it. Callers verify what they store. The package remembers which files this process has
// verified.
//
// Unless documented otherwise, a call waits at most a second for the disk (ErrSlow).
package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// ErrNotStored is returned for a blob or tag that is not on the volume.
var ErrNotStored = fs.ErrNotExist

// Store is the volume of one cache. It is safe for concurrent use.
type Store struct {
	*disk
	root *os.Root
	// checked maps blobs to the verified versions of their files.
	checked sync.Map
}

// New opens the volume in an existing directory. Unless owned is set, it refuses the volume of a
// registry that might not be a cache: images pushed to a registry must not expire.
func New(directory string, owned bool) (*Store, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("open the volume: %w", err)
	}
	s := &Store{disk: newDisk(), root: root}
	if !owned && s.has(layout) && !s.has(own) && !s.has(stockState) {
		_ = root.Close()
		return nil, &NotCacheError{directory}
	}
	_ = root.MkdirAll(partials, 0o755)           // a read-only volume is still served
	left, _ := fs.Glob(root.FS(), temporary+"*") // from interrupted writes
	for _, name := range left {
		_ = root.Remove(name)
	}
	return s, nil
}

// NotCacheError is returned if the volume belongs to a registry that might not be a cache.
type NotCacheError struct{ Directory string }

// Error implements error.
func (e *NotCacheError) Error() string {
	return fmt.Sprintf("%s contains a registry, but neither a cache's folder %s nor its file %s: use an empty folder, "+
		"or set cache.owned if it belongs to a cache without a TTL", e.Directory, own, stockState)
}

// UsageError marks an error that a restart with the same configuration cannot fix.
func (e *NotCacheError) UsageError() {}

func (s *Store) has(name string) bool {
	_, err := s.root.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// Close closes the volume. Open blobs stay readable.
func (s *Store) Close() error { return s.root.Close() }

// File is the file of a stored blob.
type File struct {
	*os.File
	Size int64
	// Checked reports whether this process has verified the file since its last change.
	Checked bool
}

// Open opens a stored blob, or returns ErrNotStored.
func (s *Store) Open(blob digest.Digest) (*File, error) {
	return on(s.disk, "open blob", blob, func() (*File, error) {
		file, err := s.root.Open(blobFile(blob))
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		passed, _ := s.checked.Load(blob)
		return &File{file, info.Size(), passed == versionOf(info)}, nil
	})
}

// Used records a use of the blob in the access time of its file, which survives a restart.
func (s *Store) Used(blob digest.Digest, now time.Time) error {
	return s.run("record the use of blob", blob, func() error {
		return s.root.Chtimes(blobFile(blob), now, time.Time{})
	})
}

// Write stores a small blob. The caller must have verified the content. A crash can leave an empty
// file, so the file counts as unchecked after a restart.
func (s *Store) Write(blob digest.Digest, content []byte) error {
	return s.run("store blob", blob, func() error {
		if err := s.write(blobFile(blob), content); err != nil {
			return err
		}
		if info, err := s.root.Stat(blobFile(blob)); err == nil {
			s.checked.Store(blob, versionOf(info))
		}
		return nil
	})
}

func (s *Store) write(file string, content []byte) error {
	name := temporary + rand.Text()
	err := s.root.WriteFile(name, content, 0o644)
	if err == nil {
		err = s.place(name, file)
	}
	if err != nil {
		_ = s.root.Remove(name)
	}
	return err
}

// place moves a file to its final name. Remove may delete the empty folder between the two steps,
// so place retries.
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

// Remove removes a blob with its links, the tags that refer to it, and folders that become empty.
// An open blob stays readable. Missing files are ignored. Remove waits for the disk without a
// timeout.
func (s *Store) Remove(blob digest.Digest, of Blob) error {
	s.checked.Delete(blob)
	var failed []error
	for _, l := range of.Links {
		failed = append(failed, s.removeUpTo(path.Dir(linkFile(blob, l)), repositories))
	}
	for _, t := range of.Tags {
		if to, err := s.readTag(t); err != nil || to == blob {
			failed = append(failed, s.removeUpTo(tagDir(t), repositories))
		}
	}
	if err := errors.Join(append(failed, s.removeUpTo(blobDir(blob), blobs))...); err != nil {
		return fmt.Errorf("remove blob %s: %w", blob, err)
	}
	return nil
}

// removeUpTo removes a folder with its content, then its empty parents below top.
func (s *Store) removeUpTo(folder, top string) error {
	if err := s.root.RemoveAll(folder); err != nil {
		return err
	}
	for parent := path.Dir(folder); parent != top && s.root.Remove(parent) == nil; {
		parent = path.Dir(parent)
	}
	return nil // the parent is not empty, or already removed
}

// versionOf returns a value that changes when the file is changed or replaced.
func versionOf(info fs.FileInfo) [2]int64 { return [2]int64{info.Size(), info.ModTime().UnixNano()} }

// Distrust makes a blob count as not checked. Callers use it when the disk cannot read the blob.
func (s *Store) Distrust(blob digest.Digest) { s.checked.Delete(blob) }

// Check verifies an unchecked file that Open returned, and removes a damaged blob. It waits for the
// disk without a timeout.
func (s *Store) Check(blob digest.Digest, file *os.File) error {
	verifier := blob.Verifier()
	info, err := file.Stat()
	if err == nil {
		_, err = io.Copy(verifier, io.NewSectionReader(file, 0, info.Size()))
	}
	if err != nil {
		slog.Warn("a stored blob cannot be read", "blob", blob, "error", err)
		return fmt.Errorf("check blob %s: %w", blob, err) // the disk may be able to read it later
	}
	if verifier.Verified() {
		s.checked.Store(blob, versionOf(info))
		return nil
	}
	metrics.Damaged.Inc()
	slog.Warn("a stored blob is damaged: it is removed", "blob", blob)
	now, err := s.root.Stat(blobFile(blob))
	if err == nil && os.SameFile(now, info) { // not replaced meanwhile
		err = s.removeUpTo(blobDir(blob), blobs)
	}
	return errors.Join(fmt.Errorf("blob %s is damaged: %w", blob, ErrNotStored), err)
}

// Partial opens or creates the file of a partial blob. The file survives a restart. Only one caller
// at a time may use it.
func (s *Store) Partial(blob digest.Digest) (*os.File, error) {
	name := partialFile(blob)
	return on(s.disk, "open partial blob", blob, func() (*os.File, error) {
		if err := s.root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return nil, err
		}
		return s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	})
}

// Arrived returns how many bytes of a partial blob are stored.
func (s *Store) Arrived(blob digest.Digest) int64 {
	info, err := s.stat(partialFile(blob))
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *Store) stat(file string) (fs.FileInfo, error) {
	return on(s.disk, "look for", file, func() (fs.FileInfo, error) { return s.root.Stat(file) })
}

// Reopen opens the file a second time, even if it has been renamed or removed.
func (s *Store) Reopen(file *os.File) (*os.File, error) {
	return on(s.disk, "reopen", file.Name(), func() (*os.File, error) {
		return os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	})
}

// Temporary is a new file, which Commit turns into a stored blob.
type Temporary struct {
	*os.File
	name  string
	store *Store
}

// Temporary creates a file for a blob. After a crash, New removes it.
func (s *Store) Temporary() (*Temporary, error) {
	name := temporary + rand.Text()
	return on(s.disk, "create", name, func() (*Temporary, error) {
		file, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		return &Temporary{file, name, s}, err
	})
}

// Close closes the file, and removes it unless it has been committed.
func (t *Temporary) Close() error {
	remove := func() error { return unlessMissing(t.store.root.Remove(t.name)) }
	return errors.Join(t.File.Close(), t.store.run("remove", t.name, remove))
}

func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Commit turns the file into a stored blob. The caller must have verified the content.
func (t *Temporary) Commit(blob digest.Digest) error { return t.store.commit(blob, t.File, t.name) }

// Commit turns the file of Partial into a stored blob. The caller must have verified the content.
// The file stays open. Commit waits for the disk without a timeout.
func (s *Store) Commit(blob digest.Digest, partial *os.File) error {
	return s.commit(blob, partial, partialFile(blob))
}

func (s *Store) commit(blob digest.Digest, file *os.File, name string) error {
	err := file.Sync()
	if err == nil {
		err = s.place(name, blobFile(blob))
	}
	if err != nil {
		return fmt.Errorf("store blob %s: %w", blob, err)
	}
	if info, err := file.Stat(); err == nil {
		s.checked.Store(blob, versionOf(info))
	}
	if folder, err := s.root.Open(blobDir(blob)); err == nil { // best effort: after a crash the blob may be fetched again
		_, _ = folder.Sync(), folder.Close()
	}
	return nil
}

// DropPartial removes a partial blob. An open file stays readable.
func (s *Store) DropPartial(blob digest.Digest) error {
	remove, err := s.SetPartialAside(blob)
	return errors.Join(err, remove())
}

// SetPartialAside renames the file of a partial blob, so that Partial creates an empty one. The
// caller must then call remove, which deletes the renamed file. That is slow for a large file.
func (s *Store) SetPartialAside(blob digest.Digest) (remove func() error, err error) {
	name := temporary + rand.Text()
	err = s.run("remove partial blob", blob, func() error { return s.root.Rename(partialFile(blob), name) })
	if err != nil {
		return func() error { return nil }, unlessMissing(err)
	}
	return func() error { return s.root.Remove(name) }, nil
}
