package registry

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"github.com/sirupsen/logrus"
)

// overdueSpacing is between two objects whose time was up before the start. Distribution collects them one after another under
// a lock that pulls need; if it had the turn of all of them at once, they would wait for the last.
const overdueSpacing = 10 * time.Millisecond

// addMissing adds entries for what is linked from a repository, stored, and not in the state, and returns how many. Their time is
// up when it would have been without a crash: the TTL after they were stored, which is when their files were written.
// What cannot be read, and what is not reached within the limit, is left as it is.
func (r repair) addMissing(ctx context.Context, entries map[string]*expiry) int {
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	found := map[string]*expiry{}
	repositories := filepath.Join(r.root, "docker/registry/v2/repositories")
	err := filepath.WalkDir(repositories, func(path string, entry fs.DirEntry, err error) error {
		if ended := limited.Err(); ended != nil {
			return ended
		}
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // there is none before the first pull; and distribution tidies up
				logrus.Warnf("cannot read a folder of the store; what it has is not collected if it is not in %s: %v", stateFile, err)
			}
			return nil
		}
		parent := filepath.Base(filepath.Dir(path))
		if entry.IsDir() && entry.Name() == uploads {
			removeUploads(path)
			return fs.SkipDir
		}
		if !entry.IsDir() || entry.Name() == "tags" && parent == "_manifests" {
			return skip(entry)
		}
		link, isLink := linkOf(strings.TrimPrefix(path, repositories+string(filepath.Separator)))
		if !isLink {
			return nil
		}
		if entries[link.key] != nil || found[link.key] != nil {
			return fs.SkipDir
		}
		if stored, err := r.stored(path, link.digest); err == nil {
			found[link.key] = &expiry{Key: link.key, Expiry: r.expiry(stored), EntryType: link.entryType}
		}
		return fs.SkipDir
	})
	if err != nil && ctx.Err() == nil {
		logrus.Warnf("the store is too big or its disk too slow to be looked through within %s: some of what was stored just before a "+
			"crash may be collected only after another start", r.limit)
	}
	r.spreadOverdue(found)
	for key, entry := range found {
		entries[key] = entry
	}
	return len(found)
}

// skip leaves out a file, or a folder with what is in it.
func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// link is from a repository to what is stored.
type link struct {
	key       string
	digest    digest.Digest
	entryType int
}

// linkOf returns the link whose folder this is, below that of all repositories.
func linkOf(folder string) (link, bool) {
	for entryType, links := range []string{expiryOfBlob: "/_layers/", expiryOfManifest: "/_manifests/revisions/"} {
		repository, rest, found := strings.Cut(filepath.ToSlash(folder), links)
		algorithm, encoded, isDigest := strings.Cut(rest, "/")
		if !found || !isDigest {
			continue
		}
		name, err := reference.WithName(repository)
		if err != nil {
			continue
		}
		canonical, err := reference.WithDigest(name, digest.NewDigestFromEncoded(digest.Algorithm(algorithm), encoded))
		if err != nil || canonical.Digest().Validate() != nil {
			continue
		}
		return link{canonical.String(), canonical.Digest(), entryType}, true
	}
	return link{}, false
}

// stored returns when the link in this folder or the blob that it names was written, whichever was later: distribution leaves a link
// when another repository's time for the same blob is up, and it is good again when the blob is fetched again.
func (r repair) stored(folder string, blob digest.Digest) (time.Time, error) {
	link, err := os.Stat(filepath.Join(folder, "link"))
	if err != nil {
		return time.Time{}, err
	}
	encoded := blob.Encoded()
	data, err := os.Stat(filepath.Join(r.root, filepath.FromSlash(blobsFolder), blob.Algorithm().String(), encoded[:2], encoded, "data"))
	if err != nil {
		return time.Time{}, err
	}
	if data.ModTime().After(link.ModTime()) {
		return data.ModTime(), nil
	}
	return link.ModTime(), nil
}

// expiry returns when the time of what was stored then is up. A clock that was wrong gives nothing more than its TTL from now on.
func (r repair) expiry(stored time.Time) time.Time {
	if stored.After(r.now) {
		stored = r.now
	}
	return stored.Add(r.ttl)
}

// spreadOverdue gives what would expire at once one turn after another.
func (r repair) spreadOverdue(found map[string]*expiry) {
	var overdue []*expiry
	for _, entry := range found {
		if entry.Expiry.Before(r.now) {
			overdue = append(overdue, entry)
		}
	}
	slices.SortFunc(overdue, func(a, b *expiry) int { return a.Expiry.Compare(b.Expiry) })
	for i, entry := range overdue {
		entry.Expiry = r.now.Add(time.Duration(i) * overdueSpacing)
	}
}

// uploads is the folder of a repository in which distribution stores what it fetches, until it has all of it.
const uploads = "_uploads"

// removeUploads removes what a cache that was killed has not got to the end. distribution keeps it for a week, in which it takes room
// that fetches would need, and nothing goes on with it.
func removeUploads(folder string) {
	if err := os.RemoveAll(folder); err != nil {
		logrus.Warnf("cannot remove what a killed cache has fetched in part; it takes room until it is a week old: %v", err)
	}
}
