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
	if err := s.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of partial blobs: %w", err)
	}
	file, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening partial blob %s: %w", blob, err)
	}
	return file, nil
}

// OpenPartial opens a blob on its way for another reader, also if it has been stored meanwhile.
func (s *Store) OpenPartial(blob digest.Digest) (*os.File, error) {
	file, err := s.root.Open(partialFile(blob))
	if errors.Is(err, fs.ErrNotExist) {
		file, err = s.root.Open(blobFile(blob))
	}
	return file, err
}

// Commit makes the file of Partial a stored blob. The caller has verified it. It stays open.
func (s *Store) Commit(blob digest.Digest, partial *os.File) error {
	if err := partial.Sync(); err != nil {
		return fmt.Errorf("writing blob %s: %w", blob, err)
	}
	if err := s.place(partialFile(blob), blobFile(blob)); err != nil {
		return fmt.Errorf("storing blob %s: %w", blob, err)
	}
	if info, err := partial.Stat(); err == nil {
		s.checks.pass(blob, info)
	}
	_ = s.sync(blobDir(blob)) // after a crash the blob may be fetched again
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
	err = s.root.Rename(partialFile(blob), name)
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return func() error { return nil }, fmt.Errorf("removing partial blob %s: %w", blob, err)
	}
	return func() error { return s.root.Remove(name) }, nil
}

// sync makes the entries of a folder survive a crash.
func (s *Store) sync(folder string) error {
	f, err := s.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
