package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
)

// Blob is a stored blob, or the part of one that has arrived.
type Blob struct {
	Size    int64
	Used    time.Time
	Partial bool
	Links   []Link
	Tags    []TagName
}

// Contents is what is stored on a volume.
type Contents struct {
	Blobs map[digest.Digest]*Blob
	Tags  map[TagName]Tag
}

// Tag is a stored tag.
type Tag struct {
	To        digest.Digest
	Confirmed time.Time
}

// The files of a volume that count. A digest is in two groups: algorithm and hexadecimal form.
var (
	blobPath    = regexp.MustCompile(`^` + blobs + `/([a-z0-9]+)/[0-9a-f]{2}/([0-9a-f]+)/data$`)
	partialPath = regexp.MustCompile(`^` + partials + `/([a-z0-9]+)/([0-9a-f]+)$`)
	linkPath    = regexp.MustCompile(
		`^` + repositories + `/(.+)/(` + layers + `|` + revisions + `)/([a-z0-9]+)/([0-9a-f]+)/link$`)
	tagPath = regexp.MustCompile(`^` + repositories + `/(.+)/` + tags + `/([^/]+)/current/link$`)
)

// Contents lists what is stored. It reads no blob, and removes the uploads of a stock
// image and damaged tags.
func (s *Store) Contents(ctx context.Context) (Contents, error) {
	found := Contents{map[digest.Digest]*Blob{}, map[TagName]Tag{}}
	var failed []error
	for _, top := range []string{layout, partials} {
		// os.Root would open each folder from the top: five times as slow with 100,000 blobs.
		err := fs.WalkDir(os.DirFS(s.root.Name()), top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // an empty volume, or removed during the walk
			case context.Cause(ctx) != nil:
				return context.Cause(ctx)
			case err != nil: // what can be read counts
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
		return found, fmt.Errorf("listing what is stored: %w", err)
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

// blob returns the entry of a blob. A link without a blob gets one, too, so that it is evicted. An
// entry of what is no digest is not listed.
func (c Contents) blob(algorithm, hex string) *Blob {
	blob := digest.NewDigestFromEncoded(digest.Algorithm(algorithm), hex)
	if c.Blobs[blob] == nil && blob.Validate() == nil {
		c.Blobs[blob] = &Blob{}
	}
	return cmp.Or(c.Blobs[blob], &Blob{})
}

// Space is what a volume has left.
type Space struct {
	Bytes, FreeBytes   int64
	Inodes, FreeInodes int64 // both are 0 for a file system without a limit of inodes
}

// Space returns what the volume has left for unprivileged users.
func (s *Store) Space() (Space, error) {
	return on(s.disk, "reading the size of", s.root.Name(), func() (Space, error) {
		var stat syscall.Statfs_t
		err := syscall.Statfs(s.root.Name(), &stat)
		return spaceOf(stat), err
	})
}

// largest is a size that no arithmetic of a cache lets overflow, and which a float64 has exactly.
// Some file systems say that they have 8 EiB, which is more than an int64 holds.
const largest = math.MaxInt64 / 1024

func spaceOf(stat syscall.Statfs_t) Space {
	size := func(blocks uint64) int64 { return int64(min(float64(blocks)*float64(max(stat.Bsize, 0)), largest)) }
	count := func(inodes uint64) int64 { return int64(min(inodes, largest)) }
	return Space{
		Bytes: size(stat.Blocks), FreeBytes: size(stat.Bavail), Inodes: count(stat.Files), FreeInodes: count(stat.Ffree),
	}
}
