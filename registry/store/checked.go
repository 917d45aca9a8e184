package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// version tells a file from one that has replaced it.
type version struct{ size, modified int64 }

func versionOf(info fs.FileInfo) version { return version{info.Size(), info.ModTime().UnixNano()} }

// Distrust says that the disk failed to read a blob: it counts as not checked.
func (s *Store) Distrust(blob digest.Digest) { s.checked.Delete(blob) }

// Check reads all of a blob's file, which Open has returned as not checked. It removes a blob that
// is damaged. It waits for the disk without a bound.
func (s *Store) Check(blob digest.Digest, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("checking blob %s: %w", blob, err)
	}
	verifier := blob.Verifier()
	if _, err = io.Copy(verifier, io.NewSectionReader(file, 0, info.Size())); err != nil {
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
