package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
)

const (
	// layout is the folder that distribution uses. In it, a name that begins with an underscore is
	// never part of a repository's name.
	layout       = "docker/registry/v2"
	blobs        = layout + "/blobs"
	repositories = layout + "/repositories"
	layers       = "_layers"
	revisions    = "_manifests/revisions"
	tags         = "_manifests/tags"
	stockState   = "scheduler-state.json" // of distribution's own pull-through cache
	// own is a folder that distribution ignores. It marks the volume of a cache.
	own       = "registry-cache"
	partials  = own + "/partial" // arriving blobs
	temporary = own + "/tmp-"    // the prefix of files that are being written
)

func blobDir(blob digest.Digest) string {
	return path.Join(blobs, blob.Algorithm().String(), blob.Encoded()[:2], blob.Encoded())
}

func blobFile(blob digest.Digest) string { return blobDir(blob) + "/data" }

func partialFile(blob digest.Digest) string {
	return path.Join(partials, blob.Algorithm().String(), blob.Encoded())
}

// linkFile returns the file that links a blob to a repository.
func linkFile(blob digest.Digest, l Link) string {
	kind := layers
	if l.Manifest {
		kind = revisions
	}
	return path.Join(repositories, l.Repository, kind, blob.Algorithm().String(), blob.Encoded(), "link")
}

func tagDir(t TagName) string      { return path.Join(repositories, t.Repository, tags, t.Tag) }
func currentFile(t TagName) string { return tagDir(t) + "/current/link" }

// Patterns of paths on a volume. Two groups match a digest: its algorithm and its hexadecimal form.
var (
	blobPath    = regexp.MustCompile(`^` + blobs + `/([a-z0-9]+)/[0-9a-f]{2}/([0-9a-f]+)/data$`)
	partialPath = regexp.MustCompile(`^` + partials + `/([a-z0-9]+)/([0-9a-f]+)$`)
	linkPath    = regexp.MustCompile(
		`^` + repositories + `/(.+)/(` + layers + `|` + revisions + `)/([a-z0-9]+)/([0-9a-f]+)/link$`)
	tagPath = regexp.MustCompile(`^` + repositories + `/(.+)/` + tags + `/([^/]+)/current/link$`)
)

// Link records that a repository serves a blob: as a manifest if Manifest is set, else as a blob.
type Link struct {
	Repository string
	Manifest   bool
}

// Link writes the link of a blob, unless an undamaged one exists. A stock image does not serve a
// blob without a link.
func (s *Store) Link(blob digest.Digest, l Link) error {
	return s.run("link blob", blob, func() error { return s.writeLink(linkFile(blob, l), blob) })
}

// Linked reports whether the link of a blob is stored.
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

// Tag returns the manifest to which a tag refers, or ErrNotStored if the tag is missing or damaged.
func (s *Store) Tag(t TagName) (digest.Digest, error) {
	return on(s.disk, "read tag", t, func() (digest.Digest, error) { return s.readTag(t) })
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

// SetTag stores a tag, and the time when the upstream confirmed it. It does not write
// distribution's index of earlier manifests, which nothing reads.
func (s *Store) SetTag(t TagName, to digest.Digest, confirmed time.Time) error {
	return s.run("store tag", t, func() error {
		if err := s.writeLink(currentFile(t), to); err != nil {
			return err
		}
		return s.root.Chtimes(currentFile(t), confirmed, confirmed)
	})
}

// RemoveTag removes a tag, if it is stored, and folders that become empty.
func (s *Store) RemoveTag(t TagName) error {
	return s.run("remove tag", t, func() error { return s.removeUpTo(tagDir(t), repositories) })
}

func (t TagName) String() string { return t.Repository + ":" + t.Tag }

// Blob describes a stored or partial blob.
type Blob struct {
	Size    int64
	Used    time.Time
	Partial bool
	Links   []Link
	Tags    []TagName
}

// Is reports whether a repository links the blob as a manifest or, if manifest is false, as a blob.
func (b *Blob) Is(manifest bool) bool {
	return slices.ContainsFunc(b.Links, func(l Link) bool { return l.Manifest == manifest })
}

// Contents lists the blobs and the tags of a volume.
type Contents struct {
	Blobs map[digest.Digest]*Blob
	Tags  map[TagName]Tag
}

// Tag is the manifest to which a stored tag refers.
type Tag struct {
	To        digest.Digest
	Confirmed time.Time
}

// Contents lists the stored content without reading blobs. It removes damaged tags, and unfinished
// uploads to a stock image.
func (s *Store) Contents(ctx context.Context) (Contents, error) {
	found := Contents{map[digest.Digest]*Blob{}, map[TagName]Tag{}}
	var failed []error
	for _, top := range []string{layout, partials} {
		// os.Root would open each folder from the root, which is five times slower with 100,000 blobs.
		err := fs.WalkDir(os.DirFS(s.root.Name()), top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // the volume is empty, or the file was removed during the walk
			case context.Cause(ctx) != nil:
				return context.Cause(ctx)
			case err != nil: // use what can be read
				failed = append(failed, err)
			case entry.IsDir() && entry.Name() == "_uploads":
				failed = append(failed, s.removeUpTo(name, repositories))
				return fs.SkipDir
			case !entry.IsDir():
				failed = append(failed, s.add(found, name, entry))
			}
			return nil
		})
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return found, fmt.Errorf("list what is stored: %w", err)
	}
	return found, nil
}

func (s *Store) add(found Contents, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return unlessMissing(err)
	}
	if m := blobPath.FindStringSubmatch(name); m != nil {
		at := found.blob(m[1], m[2])
		stat, _ := info.Sys().(*syscall.Stat_t)
		readOrWritten := []time.Time{time.Unix(stat.Atim.Unix()), info.ModTime()}
		at.Size, at.Used, at.Partial = info.Size(), slices.MaxFunc(readOrWritten, time.Time.Compare), false
	} else if m := partialPath.FindStringSubmatch(name); m != nil {
		if at := found.blob(m[1], m[2]); at.Size == 0 {
			at.Size, at.Used, at.Partial = info.Size(), info.ModTime(), true
		}
	} else if m := linkPath.FindStringSubmatch(name); m != nil {
		at := found.blob(m[3], m[4])
		at.Links = append(at.Links, Link{m[1], m[2] == revisions})
	} else if m := tagPath.FindStringSubmatch(name); m != nil {
		tag := TagName{m[1], m[2]}
		to, err := s.readTag(tag)
		if errors.Is(err, ErrNotStored) {
			return s.removeUpTo(tagDir(tag), repositories)
		}
		if err != nil {
			return err
		}
		found.blob(to.Algorithm().String(), to.Encoded())
		found.Tags[tag] = Tag{to, info.ModTime()}
	}
	return nil
}

// blob returns the entry of a blob. A link without a blob also gets an entry, so that the link is
// evicted. The entry of an invalid digest is not added.
func (c Contents) blob(algorithm, hex string) *Blob {
	blob := digest.NewDigestFromEncoded(digest.Algorithm(algorithm), hex)
	if c.Blobs[blob] == nil && blob.Validate() == nil {
		c.Blobs[blob] = &Blob{}
	}
	return cmp.Or(c.Blobs[blob], &Blob{})
}

// Space is the size and the free space of a volume.
type Space struct {
	Bytes, FreeBytes   int64
	Inodes, FreeInodes int64 // both are 0 if the file system does not limit inodes
}

// Space returns the size of the volume, and the free space for unprivileged processes.
func (s *Store) Space() (Space, error) {
	return on(s.disk, "read the size of", s.root.Name(), func() (Space, error) {
		var stat syscall.Statfs_t
		err := syscall.Statfs(s.root.Name(), &stat)
		return spaceOf(stat), err
	})
}

// largest is the maximum number that Space returns. A float64 represents it exactly, and callers
// can multiply it by 100. Some file systems report 8 EiB, which does not fit into an int64.
const largest = math.MaxInt64 / 1024

func spaceOf(stat syscall.Statfs_t) Space {
	size := func(blocks uint64) int64 { return int64(min(float64(blocks)*float64(max(stat.Bsize, 0)), largest)) }
	return Space{size(stat.Blocks), size(stat.Bavail), int64(min(stat.Files, largest)), int64(min(stat.Ffree, largest))}
}
