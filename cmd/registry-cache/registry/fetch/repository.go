package fetch

import (
	"context"
	"errors"
	"maps"
	"net/http"
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
	if !t.group.hasRoom(0) {
		ctx = pastStore(ctx, "tag", tag)
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
	found, err := b.BlobStore.Stat(ctx, blob)
	b.size = found.Size
	return found, err
}

// ServeBlob implements distribution.BlobServer. What is stored, and a request for a part, is distribution's alone.
func (b *blobs) ServeBlob(ctx context.Context, w http.ResponseWriter, r *http.Request, blob digest.Digest) error {
	if b.group.stored(ctx, b.repository, layers, blob) {
		return b.BlobStore.ServeBlob(ctx, w, r, blob)
	}
	if !b.group.underWay(blob) && !b.group.hasRoom(b.size) {
		err := b.BlobStore.ServeBlob(pastStore(ctx, "blob", blob.String()), w, r, blob)
		if errors.Is(err, errPast) {
			return nil
		}
		return err
	}
	if r.Method != http.MethodGet || r.Header.Get("Range") != "" {
		return b.BlobStore.ServeBlob(ctx, w, r, blob)
	}
	request := r.Clone(context.WithoutCancel(ctx))
	f := b.group.join(ctx, blob, b.size, func(ctx context.Context, w http.ResponseWriter) error {
		return b.BlobStore.ServeBlob(ctx, w, request, blob)
	})
	if f == nil {
		return b.BlobStore.ServeBlob(ctx, w, r, blob)
	}
	defer b.group.leave(blob, f)
	now, err := f.answer(ctx)
	if err != nil {
		return err
	}
	if now.header == nil {
		if now.err != nil && !errors.Is(now.err, errNotStored) {
			return now.err
		}
		return b.BlobStore.ServeBlob(ctx, w, r, blob) // it was stored meanwhile, is empty, or goes past the store
	}
	maps.Copy(w.Header(), now.header.Clone())
	w.WriteHeader(http.StatusOK)
	if err := f.send(ctx, w); err != nil {
		// distribution would write an error behind what the client has got. An answer that is too short says it as well, and ends
		// the connection.
		logrus.Warnf("a client did not get all of %s: %v", blob, err)
	}
	_ = http.NewResponseController(w).Flush() // whoever leaves last waits for the disk, but its client need not
	return nil
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
		defer time.AfterFunc(stalled, func() { m.group.manifests.Forget(key) }).Stop()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), manifestPatience)
		defer cancel()
		if !m.group.hasRoom(0) {
			ctx = pastStore(ctx, "manifest", key)
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
