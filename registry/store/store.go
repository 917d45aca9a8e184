// Package store is the volume of one cache, in distribution's layout, so that a stock image can
// serve it. It writes what the caller has verified, and knows which files have been compared with
// their digest since the start.
//
// A call waits at most a second for the disk (ErrSlow). The package knows neither clients nor the
// upstream.
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

// ErrNotStored says that the volume does not have a blob or tag.
var ErrNotStored = fs.ErrNotExist

// Store is the volume of one cache. Its methods may be called at the same time.
type Store struct {
	*disk
	root *os.Root
	// checked has the versions of files that have been compared with their digest: at most an entry
	// for each file.
	checked sync.Map
}

// New opens the volume in directory, which must exist. Unless owned is set, it refuses the volume
// of a registry that is not known to be a cache's: what is pushed there must not expire.
func New(directory string, owned bool) (*Store, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("opening the volume: %w", err)
	}
	s := &Store{disk: newDisk(), root: root}
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

// File is the file of a stored blob.
type File struct {
	*os.File
	Size int64
	// Checked says that the content was compared with the digest since the start, and since the
	// last change of the file.
	Checked bool
}

// Open opens a stored blob, or returns ErrNotStored.
func (s *Store) Open(blob digest.Digest) (*File, error) {
	return on(s.disk, "opening blob", blob, func() (*File, error) {
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

// Used records that a blob is used now: the access time of its file survives a restart.
func (s *Store) Used(blob digest.Digest, now time.Time) error {
	return s.run("recording the use of blob", blob, func() error {
		return s.root.Chtimes(blobFile(blob), now, time.Time{})
	})
}

// Write stores a small blob. The caller has verified the content. After a crash the file may be
// empty: it is compared with its digest before it is served.
func (s *Store) Write(blob digest.Digest, content []byte) error {
	return s.run("storing blob", blob, func() error {
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
// empty then. A blob that is open stays readable. What does not exist is no error. It is called in
// the background, and waits for the disk without a bound.
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

// versionOf tells a file from one that has replaced it, and from itself before a change.
func versionOf(info fs.FileInfo) [2]int64 { return [2]int64{info.Size(), info.ModTime().UnixNano()} }

// Distrust says that the disk failed to read a blob: it counts as not checked.
func (s *Store) Distrust(blob digest.Digest) { s.checked.Delete(blob) }

// Check reads all of a blob's file, which Open has returned as not checked. It removes a blob that
// is damaged. It waits for the disk without a bound.
func (s *Store) Check(blob digest.Digest, file *os.File) error {
	verifier := blob.Verifier()
	info, err := file.Stat()
	if err == nil {
		_, err = io.Copy(verifier, io.NewSectionReader(file, 0, info.Size()))
	}
	if err != nil {
		slog.Warn("a stored blob cannot be read", "blob", blob, "error", err)
		return fmt.Errorf("checking blob %s: %w", blob, err) // the disk may be able to read it later
	}
	if verifier.Verified() {
		s.checked.Store(blob, versionOf(info))
		return nil
	}
	metrics.Damaged.Inc()
	slog.Warn("a stored blob is damaged: it is removed", "blob", blob)
	now, err := s.root.Stat(blobFile(blob))
	if err == nil && os.SameFile(now, info) { // no other file has replaced it
		err = s.removeUpTo(blobDir(blob), blobs)
	}
	return errors.Join(fmt.Errorf("blob %s is damaged: %w", blob, ErrNotStored), err)
}

// Partial opens what has arrived of a blob, or creates an empty file. It survives a restart. Only
// one caller at a time may have the file of a blob.
func (s *Store) Partial(blob digest.Digest) (*os.File, error) {
	name := partialFile(blob)
	return on(s.disk, "opening partial blob", blob, func() (*os.File, error) {
		if err := s.root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return nil, err
		}
		return s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	})
}

// Arrived returns how much of a blob Partial has.
func (s *Store) Arrived(blob digest.Digest) int64 {
	info, err := s.stat(partialFile(blob))
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *Store) stat(file string) (fs.FileInfo, error) {
	return on(s.disk, "looking for", file, func() (fs.FileInfo, error) { return s.root.Stat(file) })
}

// Reopen opens a file for another reader, also when it has got another name, or none.
func (s *Store) Reopen(file *os.File) (*os.File, error) {
	return on(s.disk, "reopening", file.Name(), func() (*os.File, error) {
		return os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	})
}

// Temporary is a file that nobody finds before Commit.
type Temporary struct {
	*os.File
	name  string
	store *Store
}

// Temporary creates a file for a blob. It does not survive a restart.
func (s *Store) Temporary() (*Temporary, error) {
	name := temporary + rand.Text()
	return on(s.disk, "creating", name, func() (*Temporary, error) {
		file, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		return &Temporary{file, name, s}, err
	})
}

// Close removes the file, unless it was committed.
func (t *Temporary) Close() error {
	remove := func() error { return unlessMissing(t.store.root.Remove(t.name)) }
	return errors.Join(t.File.Close(), t.store.run("removing", t.name, remove))
}

func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Commit makes the file a stored blob. The caller has verified the content.
func (t *Temporary) Commit(blob digest.Digest) error { return t.store.commit(blob, t.File, t.name) }

// Commit makes the file of Partial a stored blob. The caller has verified the content. The file
// stays open. Commit waits for the disk without a bound.
func (s *Store) Commit(blob digest.Digest, partial *os.File) error {
	return s.commit(blob, partial, partialFile(blob))
}

func (s *Store) commit(blob digest.Digest, file *os.File, name string) error {
	err := file.Sync()
	if err == nil {
		err = s.place(name, blobFile(blob))
	}
	if err != nil {
		return fmt.Errorf("storing blob %s: %w", blob, err)
	}
	if info, err := file.Stat(); err == nil {
		s.checked.Store(blob, versionOf(info))
	}
	if folder, err := s.root.Open(blobDir(blob)); err == nil { // after a crash the blob may be fetched again
		_, _ = folder.Sync(), folder.Close()
	}
	return nil
}

// DropPartial removes what has arrived of a blob. A file that is open stays readable.
func (s *Store) DropPartial(blob digest.Digest) error {
	remove, err := s.SetPartialAside(blob)
	return errors.Join(err, remove())
}

// SetPartialAside is the quick part of DropPartial: then another Partial of the blob is empty. To
// remove a large file takes long; remove does that.
func (s *Store) SetPartialAside(blob digest.Digest) (remove func() error, err error) {
	name := temporary + rand.Text()
	err = s.run("removing partial blob", blob, func() error { return s.root.Rename(partialFile(blob), name) })
	if err != nil {
		return func() error { return nil }, unlessMissing(err)
	}
	return func() error { return s.root.Remove(name) }, nil
}
