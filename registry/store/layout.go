package store

import (
	"path"
	"regexp"

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
	hex := blob.Encoded()
	return path.Join(blobs, blob.Algorithm().String(), hex[:2], hex)
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

// The files of a volume that count. A digest is in two groups: algorithm and hexadecimal form.
var (
	blobPath    = regexp.MustCompile(`^` + blobs + `/([a-z0-9]+)/[0-9a-f]{2}/([0-9a-f]+)/data$`)
	partialPath = regexp.MustCompile(`^` + partials + `/([a-z0-9]+)/([0-9a-f]+)$`)
	linkPath    = regexp.MustCompile(
		`^` + repositories + `/(.+)/(_layers|_manifests/revisions)/([a-z0-9]+)/([0-9a-f]+)/link$`)
	tagPath = regexp.MustCompile(`^` + repositories + `/(.+)/_manifests/tags/([^/]+)/current/link$`)
)
