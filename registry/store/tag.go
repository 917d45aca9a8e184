package store

import (
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
)

// TagName names a tag of a repository.
type TagName struct{ Repository, Tag string }

// Tag returns the manifest to which a tag refers, or ErrNotStored, also for a damaged tag.
func (s *Store) Tag(t TagName) (digest.Digest, error) {
	return on(s.disk, "reading tag", t, func() (digest.Digest, error) { return s.readTag(t) })
}

func (s *Store) readTag(t TagName) (digest.Digest, error) {
	content, err := s.root.ReadFile(currentFile(t))
	if err != nil {
		return "", err
	}
	blob, err := digest.Parse(string(content))
	if err != nil {
		return "", fmt.Errorf("tag %s is damaged: %w: %w", t, ErrNotStored, err)
	}
	return blob, nil
}

// SetTag stores a tag, and when the upstream has confirmed to what it refers. It does not write the
// list of what a tag once referred to, which nothing reads.
func (s *Store) SetTag(t TagName, to digest.Digest, confirmed time.Time) error {
	return s.run("storing tag", t, func() error {
		if err := s.writeLink(currentFile(t), to); err != nil {
			return err
		}
		return s.root.Chtimes(currentFile(t), confirmed, confirmed)
	})
}

// RemoveTag removes a tag, if it is stored, and the folders that are empty then.
func (s *Store) RemoveTag(t TagName) error {
	return s.run("removing tag", t, func() error { return s.removeUpTo(tagDir(t), repositories) })
}

func (t TagName) String() string { return t.Repository + ":" + t.Tag }
