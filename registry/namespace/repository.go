package namespace

import (
	"context"
	"errors"
	"net/http"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/api/errcode"
	middleware "github.com/distribution/distribution/v3/registry/middleware/registry"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/fetch"
	"github.com/gardener-extensions/registry-cache/registry/store"
)

const (
	middlewareName = "registry-cache"
	cacheOption    = "cache"
)

func init() {
	if err := middleware.Register(middlewareName, newNamespace); err != nil {
		panic(err)
	}
}

func newNamespace(
	_ context.Context, _ distribution.Namespace, _ driver.StorageDriver, options map[string]any,
) (distribution.Namespace, error) {
	c, ok := options[cacheOption].(*cache.Cache)
	if !ok {
		return nil, errors.New("the middleware needs a cache")
	}
	return namespace{cache: c}, nil
}

// Use returns the middleware that makes a registry serve from the cache.
func Use(c *cache.Cache) configuration.Middleware {
	return configuration.Middleware{Name: middlewareName, Options: configuration.Parameters{cacheOption: c}}
}

type namespace struct {
	distribution.Namespace // nil: a server without a catalog calls nothing else
	cache                  *cache.Cache
}

// Repository implements distribution.Namespace.
func (n namespace) Repository(_ context.Context, name reference.Named) (distribution.Repository, error) {
	return repository{n.cache, name}, nil
}

type repository struct {
	cache *cache.Cache
	name  reference.Named
}

// Named implements distribution.Repository.
func (r repository) Named() reference.Named { return r.name }

// Manifests implements distribution.Repository.
func (r repository) Manifests(context.Context, ...distribution.ManifestServiceOption) (distribution.ManifestService, error) {
	return &manifests{repository: r}, nil
}

// Blobs implements distribution.Repository.
func (r repository) Blobs(context.Context) distribution.BlobStore { return &blobs{repository: r} }

// Tags implements distribution.Repository.
func (r repository) Tags(context.Context) distribution.TagService { return tags{repository: r} }

// manifest is a manifest as the upstream sent it, whatever its media type.
type manifest struct{ cache.Manifest }

// References implements distribution.Manifest.
func (m manifest) References() []v1.Descriptor { return nil }

// Payload implements distribution.Manifest.
func (m manifest) Payload() (string, []byte, error) { return m.MediaType, m.Content, nil }

type manifests struct {
	distribution.ManifestService // nil: a registry that is read-only calls nothing else
	repository
}

// Get implements distribution.ManifestService. For a tag, distribution has called tags.Get before.
func (m *manifests) Get(
	ctx context.Context, blob digest.Digest, _ ...distribution.ManifestServiceOption,
) (distribution.Manifest, error) {
	if found := of(ctx).manifest; found != nil {
		return manifest{*found}, nil
	}
	found, err := m.cache.Manifest(ctx, m.name.Name(), blob)
	of(ctx).served("manifest", found.From)
	if err != nil {
		return nil, answer(ctx, err, errcode.ErrorCodeManifestUnknown)
	}
	return manifest{found}, nil
}

type tags struct {
	distribution.TagService // nil, as in manifests
	repository
}

// Get implements distribution.TagService.
func (t tags) Get(ctx context.Context, tag string) (v1.Descriptor, error) {
	found, err := t.cache.Tag(ctx, store.TagName{Repository: t.name.Name(), Tag: tag})
	of(ctx).served("manifest", found.From)
	if err != nil {
		return v1.Descriptor{}, answer(ctx, err, errcode.ErrorCodeManifestUnknown)
	}
	if found.From == cache.FromStale {
		of(ctx).writer.Header().Set("Warning", `110 registry-cache "Response is Stale"`)
	}
	of(ctx).manifest = &found
	return v1.Descriptor{MediaType: found.MediaType, Digest: found.Digest, Size: int64(len(found.Content))}, nil
}

// List implements distribution.TagService. A cache has only some of the tags.
func (t tags) List(context.Context, int, string) ([]string, error) {
	return nil, errcode.ErrorCodeUnsupported.WithMessage("a cache does not list tags: ask the upstream")
}

type blobs struct {
	distribution.BlobStore // nil, as in manifests
	repository
	found *cache.Blob
}

// Stat implements distribution.BlobStatter. distribution calls it before ServeBlob, and its
// listener for notifications once more after that.
func (b *blobs) Stat(ctx context.Context, blob digest.Digest) (v1.Descriptor, error) {
	if b.found == nil {
		e, find := of(ctx), b.cache.Blob
		if e.request.Method == http.MethodHead {
			find = b.cache.Stat
		}
		found, err := find(ctx, b.name.Name(), blob)
		e.served("blob", found.From)
		if err != nil {
			return v1.Descriptor{}, answer(ctx, err, errcode.ErrorCodeBlobUnknown)
		}
		b.found = found
	}
	return v1.Descriptor{MediaType: "application/octet-stream", Digest: blob, Size: b.found.Size}, nil
}

// ServeBlob implements distribution.BlobServer.
func (b *blobs) ServeBlob(ctx context.Context, _ http.ResponseWriter, r *http.Request, blob digest.Digest) error {
	defer func() { _ = b.found.Close() }()
	if startsAfter(r.Header.Get("Range"), b.found.Arrived()+longestLead) {
		return answer(ctx, fetch.ErrOutOfReach, errcode.ErrorCodeBlobUnknown)
	}
	serve(ctx, of(ctx), blob, b.found)
	return nil
}
