package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardener-extensions/registry-cache/registry/fetch"
	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
)

// largestManifest bounds a manifest, as in distribution.
const largestManifest = 4 << 20

// accepted are the media types of manifests that every client may get.
var accepted = http.Header{"Accept": {strings.Join([]string{
	v1.MediaTypeImageManifest, v1.MediaTypeImageIndex,
	"application/vnd.docker.distribution.manifest.v2+json", "application/vnd.docker.distribution.manifest.list.v2+json", "*/*",
}, ", ")}}

// Manifest is a manifest or an index.
type Manifest struct {
	From      From
	Digest    digest.Digest
	MediaType string
	Content   []byte
	unstored  bool
}

// is reports whether this is the digest of the content, with any algorithm.
func (m Manifest) is(said string) bool {
	parsed, err := digest.Parse(said)
	return err == nil && parsed.Algorithm().FromBytes(m.Content) == parsed
}

// Manifest returns a manifest by its digest. It waits at most upstream.Patience for the upstream.
func (c *Cache) Manifest(ctx context.Context, repository string, blob digest.Digest) (Manifest, error) {
	if m, err := c.stored(ctx, repository, blob); err == nil {
		return m, nil
	}
	return ask(ctx, c, "manifest", repository, "manifests/"+blob.String(), func(ctx context.Context) (Manifest, error) {
		if m, err := c.stored(ctx, repository, blob); err == nil { // since the client looked for it
			return m, nil
		}
		return c.download(ctx, c.options.Upstream, repository, blob.String())
	})
}

// stored reads a manifest from the volume.
func (c *Cache) stored(ctx context.Context, repository string, blob digest.Digest) (Manifest, error) {
	file, size, err := c.open(ctx, store.Link{Repository: repository, Manifest: true}, blob)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { _ = file.Close() }()
	if size > largestManifest {
		return Manifest{}, fmt.Errorf("%s has %d bytes, a manifest at most %d", blob, size, largestManifest)
	}
	content, err := io.ReadAll(file)
	if err == nil && blob.Algorithm().FromBytes(content) != blob { // its check may take longer than Open waits
		err = &fetch.DamagedError{Blob: blob.String()}
	}
	return Manifest{From: FromVolume, Digest: blob, MediaType: mediaTypeOf(content), Content: content}, err
}

// download gets a manifest from the upstream, by tag or digest, and stores it. A manifest that the
// volume does not take is returned all the same.
func (c *Cache) download(ctx context.Context, from fetch.Upstream, repository, reference string) (Manifest, error) {
	response, err := request(ctx, from, http.MethodGet, repository, "manifests/"+reference)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, largestManifest+1))
	if err != nil {
		return Manifest{}, err
	}
	if len(content) > largestManifest {
		return Manifest{}, fmt.Errorf("manifest %s:%s has more than %d bytes", repository, reference, largestManifest)
	}
	metrics.Pulled.WithLabelValues("manifest").Add(float64(len(content)))
	m := Manifest{From: FromUpstream, Digest: digest.FromBytes(content), MediaType: response.Header.Get("Content-Type"), Content: content}
	if wanted, err := digest.Parse(reference); err == nil {
		if m.Digest = wanted; wanted.Algorithm().FromBytes(content) != wanted {
			if replica, ok := response.Body.(fetch.Replica); ok {
				replica.Wrong() // and is not asked again soon
				return c.download(ctx, from, repository, reference)
			}
			return Manifest{}, &fetch.DamagedError{Blob: reference}
		}
	} else if said := response.Header.Get("Docker-Content-Digest"); !json.Valid(content) || said != "" && !m.is(said) {
		return Manifest{}, fmt.Errorf("the upstream's answer for %s:%s is no manifest, or not that with its digest %s", repository, reference, said)
	}
	if err := c.keep(repository, m); err != nil {
		slog.Warn("a manifest is not stored", "repository", repository, "blob", m.Digest, "error", err)
		m.unstored = true
	}
	return m, nil
}

// keep stores a manifest.
func (c *Cache) keep(repository string, m Manifest) error {
	room, ok := c.Reserve(int64(len(m.Content)))
	if !ok {
		metrics.Unstored.WithLabelValues("manifest").Inc()
		return errors.New("the volume has no room")
	}
	defer room.Release()
	if err := c.options.Store.Write(m.Digest, m.Content); err != nil {
		return err
	}
	c.used(store.Link{Repository: repository, Manifest: true}, m.Digest, int64(len(m.Content)))
	return nil
}

// mediaTypeOf returns the media type of a stored manifest. An OCI manifest need not name its own
// (image-spec, manifest.md); then an index is known by its list.
func mediaTypeOf(content []byte) string {
	var m struct {
		MediaType string `json:"mediaType"`
		Manifests []any  `json:"manifests"`
	}
	_ = json.Unmarshal(content, &m)
	switch {
	case m.MediaType != "":
		return m.MediaType
	case m.Manifests != nil:
		return v1.MediaTypeImageIndex
	default:
		return v1.MediaTypeImageManifest
	}
}
