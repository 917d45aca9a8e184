package fetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sirupsen/logrus"
)

// manifestPatience bounds the fetch of a manifest for which nobody may be waiting any more.
const manifestPatience = time.Minute

// errNotStored says that distribution streams a blob past the store.
var errNotStored = errors.New("what is fetched is not stored")

// Repository is a repository middleware of distribution.
func (g *Group) Repository(_ context.Context, below distribution.Repository) (distribution.Repository, error) {
	return repository{below, g}, nil
}

type repository struct {
	distribution.Repository
	group *Group
}

// Blobs implements distribution.Repository.
func (r repository) Blobs(ctx context.Context) distribution.BlobStore {
	return &blobs{BlobStore: r.Repository.Blobs(ctx), repository: r.Named().Name(), group: r.group}
}

// Manifests implements distribution.Repository.
func (r repository) Manifests(ctx context.Context, options ...distribution.ManifestServiceOption) (distribution.ManifestService, error) {
	below, err := r.Repository.Manifests(ctx, options...)
	if err != nil {
		return nil, err
	}
	return manifests{below, r.Named().Name(), r.group}, nil
}

// Tags implements distribution.Repository.
func (r repository) Tags(ctx context.Context) distribution.TagService {
	return tags{r.Repository.Tags(ctx), r.group}
}

type tags struct {
	distribution.TagService
	group *Group
}

// Get implements distribution.TagService. distribution stores each tag that it gets.
func (t tags) Get(ctx context.Context, tag string) (v1.Descriptor, error) {
	if full := t.group.full(); full != nil {
		ctx = t.group.pastStore(ctx, "tag", tag, full)
	}
	return t.TagService.Get(ctx, tag)
}

// blobs is the blobs of a repository for one request.
type blobs struct {
	distribution.BlobStore
	repository string
	group      *Group
	size       int64 // of the blob, after Stat
}

// Stat implements distribution.BlobStatter. distribution calls it before ServeBlob.
func (b *blobs) Stat(ctx context.Context, blob digest.Digest) (v1.Descriptor, error) {
	if size, known := b.group.sizeOf(b.repository, blob); known {
		b.size = size
		return v1.Descriptor{MediaType: octets, Size: size, Digest: blob}, nil
	}
	found, err := b.BlobStore.Stat(ctx, blob)
	b.size = found.Size
	return found, err
}

// octets is the type of all blobs, as distribution tells it.
const octets = "application/octet-stream"

// ServeBlob implements distribution.BlobServer. What is stored is distribution's alone.
func (b *blobs) ServeBlob(ctx context.Context, w http.ResponseWriter, r *http.Request, blob digest.Digest) error {
	if b.group.stored(ctx, b.repository, layers, blob) {
		return b.BlobStore.ServeBlob(ctx, w, r, blob)
	}
	if r.Method == http.MethodHead { // distribution would fetch it
		describe(w.Header(), b.size, blob)
		return nil
	}
	request := r.Clone(context.WithoutCancel(ctx))
	f, why := b.group.join(ctx, b.repository, blob, b.size, func(ctx context.Context, w http.ResponseWriter) error {
		return b.BlobStore.ServeBlob(ctx, w, request, blob)
	})
	if f == nil {
		return b.servePast(ctx, w, r, blob, why)
	}
	leave := sync.OnceFunc(func() { b.group.leave(f) })
	defer leave()
	past := func(w http.ResponseWriter, r *http.Request, why error) error {
		leave() // a file that is open keeps its part of the volume, which may be full because of it
		return b.servePast(ctx, w, r, blob, why)
	}
	now, err := f.answer(ctx)
	switch {
	case err != nil:
		return err
	case errors.Is(now.err, errStore):
		return past(w, r, now.err)
	case now.done && now.err != nil && !errors.Is(now.err, errNotStored):
		return now.err
	case now.header == nil: // it was stored meanwhile, is empty, or distribution does not store it
		return past(w, r, errNotStored)
	}
	offset, err := f.send(ctx, w, begin(w, r, now))
	if errors.Is(err, errStore) {
		err = past(&rest{w, http.Header{}, offset}, whole(ctx, r), err)
	}
	if err != nil {
		// distribution would write an error behind what the client has got. An answer that is too short says it as well, and ends
		// the connection.
		logrus.Warnf("a client did not get all of %s: %v", blob, err)
	}
	_ = http.NewResponseController(w).Flush() // whoever leaves last waits for the disk, but its client need not
	return nil
}

// servePast answers one client by a fetch of its own, unless the blob is stored by now.
func (b *blobs) servePast(ctx context.Context, w http.ResponseWriter, r *http.Request, blob digest.Digest, why error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !b.group.stored(ctx, b.repository, layers, blob) {
		ctx = b.group.pastStore(ctx, "blob", blob.String(), why)
	}
	if err := b.BlobStore.ServeBlob(ctx, w, r, blob); !errors.Is(err, errPast) {
		return err
	}
	return nil
}

// describe writes the header of a blob, as distribution does.
func describe(header http.Header, size int64, blob digest.Digest) {
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	header.Set("Content-Type", octets)
	header.Set("Docker-Content-Digest", blob.String())
	header.Set("Etag", blob.String())
}

// begin writes the header of an answer, and returns where its body begins: at an offset for a client that goes on with what it has
// (bytes=N-), as containerd does, otherwise at the start. An answer to another range is the whole blob, as distribution's is.
func begin(w http.ResponseWriter, r *http.Request, now view) int64 {
	maps.Copy(w.Header(), now.header.Clone())
	offset, ok := offsetOf(r.Header.Get("Range"))
	if !ok || offset >= now.size {
		w.WriteHeader(http.StatusOK)
		return 0
	}
	w.Header().Set("Content-Length", strconv.FormatInt(now.size-offset, 10))
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, now.size-1, now.size))
	w.WriteHeader(http.StatusPartialContent)
	return offset
}

// offsetOf returns the N of a range bytes=N-.
func offsetOf(header string) (int64, bool) {
	number, isBytes := strings.CutPrefix(header, "bytes=")
	number, isOpen := strings.CutSuffix(number, "-")
	offset, err := strconv.ParseInt(number, 10, 64)
	return offset, isBytes && isOpen && err == nil && offset >= 0
}

type manifests struct {
	distribution.ManifestService
	repository string
	group      *Group
}

// Get implements distribution.ManifestService.
func (m manifests) Get(ctx context.Context, manifest digest.Digest, options ...distribution.ManifestServiceOption) (distribution.Manifest, error) {
	if m.group.stored(ctx, m.repository, revisions, manifest) {
		return m.ManifestService.Get(ctx, manifest, options...)
	}
	key, first := m.repository+"@"+manifest.String()+tagOf(options), false
	result := m.group.manifests.DoChan(key, func() (any, error) {
		first = true
		defer time.AfterFunc(m.group.patience, func() { m.group.manifests.Forget(key) }).Stop()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), manifestPatience)
		defer cancel()
		if full := m.group.full(); full != nil {
			ctx = m.group.pastStore(ctx, "manifest", key, full)
		}
		var got distribution.Manifest
		err := protect(func() (err error) {
			got, err = m.ManifestService.Get(ctx, manifest, options...)
			return err
		})
		return got, err
	})
	select {
	case result := <-result:
		if result.Err != nil {
			return nil, result.Err
		}
		if !first {
			coalesced.WithLabelValues("manifest").Inc()
		}
		got, _ := result.Val.(distribution.Manifest) // the function above has no other values
		return got, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tagOf keeps apart who asks by a tag, which may move, and who asks by digest.
func tagOf(options []distribution.ManifestServiceOption) (tag string) {
	for _, option := range options {
		if by, isTag := option.(distribution.WithTagOption); isTag {
			tag += ":" + by.Tag
		}
	}
	return tag
}
