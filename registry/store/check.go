package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/singleflight"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

const (
	// checkPatience is how long a client waits for the check of a blob. It is less than another
	// replica waits for an answer.
	checkPatience = 300 * time.Millisecond
	// checksAtOnce is how many large blobs are read at the same time.
	checksAtOnce = 2
	largeBlob    = 16 << 20
)

// checks remembers which files have the content of their digest.
type checks struct {
	passed     sync.Map // of version, by digest
	distrusted sync.Map // digests of files that the disk failed to read
	running    singleflight.Group
	slots      chan struct{}
}

// pass records that a file has the content of its digest.
func (c *checks) pass(blob digest.Digest, info fs.FileInfo) {
	c.passed.Store(blob, version{info.Size(), info.ModTime().UnixNano()})
	c.distrusted.Delete(blob)
}

func (c *checks) hasPassed(blob digest.Digest, info fs.FileInfo) bool {
	passed, ok := c.passed.Load(blob)
	return ok && passed == version{info.Size(), info.ModTime().UnixNano()}
}

// version tells a file from one that has replaced it.
type version struct{ size, modified int64 }

// check waits at most checkPatience until the file has been compared with its digest, unless that
// has been done. It returns an error only if the blob is known to be damaged or unreadable.
func (s *Store) check(ctx context.Context, blob digest.Digest, info fs.FileInfo) error {
	if s.checks.hasPassed(blob, info) {
		return nil
	}
	done := s.checks.running.DoChan(blob.String(), func() (any, error) { return nil, s.compare(blob) })
	select {
	case result := <-done:
		return result.Err
	case <-time.After(checkPatience):
	case <-ctx.Done():
	}
	if _, unreadable := s.checks.distrusted.Load(blob); unreadable {
		return fmt.Errorf("the disk failed to read blob %s before", blob)
	}
	return nil
}

// Distrust says that the disk failed to read a blob. Open returns an error until the whole blob was
// read again, or is replaced.
func (s *Store) Distrust(blob digest.Digest) {
	s.checks.distrusted.Store(blob, true)
	s.checks.passed.Delete(blob)
}

// compare reads the file of a blob, and removes the blob if it is damaged.
func (s *Store) compare(blob digest.Digest) error {
	file, info, err := s.open(blob)
	if err != nil {
		return fmt.Errorf("reading blob %s: %w", blob, err)
	}
	defer func() { _ = file.Close() }()
	if info.Size() > largeBlob {
		s.checks.slots <- struct{}{}
		defer func() { <-s.checks.slots }()
	}
	verifier := blob.Verifier()
	if _, err = io.Copy(verifier, file); err != nil { // the disk may be able to read it later
		s.Distrust(blob)
		slog.Warn("a stored blob cannot be read, and is fetched again", "blob", blob, "error", err)
		return fmt.Errorf("reading blob %s: %w", blob, err)
	}
	if verifier.Verified() {
		s.checks.pass(blob, info)
		return nil
	}
	metrics.Damaged.Inc()
	slog.Warn("a stored blob is damaged: it is removed, and fetched again", "blob", blob)
	return errors.Join(fmt.Errorf("blob %s is damaged: %w", blob, ErrNotStored), s.removeFile(blob, info))
}

// removeFile removes the file of a blob, unless another file has replaced it.
func (s *Store) removeFile(blob digest.Digest, old os.FileInfo) error {
	if now, err := s.root.Stat(blobFile(blob)); err != nil || !os.SameFile(now, old) {
		return err
	}
	return s.removeUpTo(blobDir(blob), blobs)
}
