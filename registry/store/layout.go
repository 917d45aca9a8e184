package store

import (
	"fmt"
	"path"
	"time"

	"github.com/opencontainers/go-digest"
)

const (
	// layout is the folder of everything that distribution writes. Below it, names that begin with
	// an underscore cannot be parts of the name of a repository.
	layout       = "docker/registry/v2"
	blobs        = layout + "/blobs"
	repositories = layout + "/repositories"
	// own is a folder that distribution ignores. It marks the volume as that of a cache.
	own = "registry-cache"
	// partials has the blobs on their way.
	partials = own + "/partial"
	// temporary begins the names of files that are being written.
	temporary = own + "/tmp-"
	// stockState is a file of distribution's own pull-through.
	stockState = "scheduler-state.json"

	layers    = "_layers"
	revisions = "_manifests/revisions"
	tags      = "_manifests/tags"
)

func blobDir(blob digest.Digest) string {
	return path.Join(blobs, blob.Algorithm().String(), blob.Encoded()[:2], blob.Encoded())
}

func blobFile(blob digest.Digest) string { return blobDir(blob) + "/data" }

func partialFile(blob digest.Digest) string {
	return path.Join(partials, blob.Algorithm().String(), blob.Encoded())
}

// linkFile returns the file by which a repository has a blob.
func linkFile(blob digest.Digest, l Link) string {
	kind := layers
	if l.Manifest {
		kind = revisions
	}
	return path.Join(repositories, l.Repository, kind, blob.Algorithm().String(), blob.Encoded(), "link")
}

func tagDir(t TagName) string      { return path.Join(repositories, t.Repository, tags, t.Tag) }
func currentFile(t TagName) string { return tagDir(t) + "/current/link" }

// Link is how a repository has a blob.
type Link struct {
	Repository string
	Manifest   bool
}

// Link writes the link of a blob, unless it exists and is undamaged. A stock image does not serve a
// blob of a repository without a link.
func (s *Store) Link(blob digest.Digest, l Link) error {
	return s.run("linking blob", blob, func() error { return s.writeLink(linkFile(blob, l), blob) })
}

// Linked reports whether a repository has a link of the blob.
func (s *Store) Linked(blob digest.Digest, l Link) bool {
	_, err := s.stat(linkFile(blob, l))
	return err == nil
}

func (s *Store) writeLink(file string, blob digest.Digest) error {
	if content, err := s.root.ReadFile(file); err == nil && string(content) == blob.String() {
		return nil
	}
	return s.write(file, []byte(blob.String()))
}

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
