package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/opencontainers/go-digest"
)

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
