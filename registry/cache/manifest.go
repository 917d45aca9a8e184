package cache

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

const (
	// largestManifest is the maximum size of a manifest, as in containerd.
	largestManifest = 4 * 1048 * 1048
	// LargeManifest is the size above which a manifest in memory needs a slot. The cache has MostLarge
	// slots for manifests that it reads, and the server has MostLarge more for those that it sends.
	LargeManifest = 64 << 10
	// MostLarge is the number of slots for large manifests.
	MostLarge = 16
	// manifestTime is the timeout for an answer with a manifest, including its body.
	manifestTime = 30 * time.Second

	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerSchema1  = "application/vnd.docker.distribution.manifest.v1+json"
	dockerSigned   = "application/vnd.docker.distribution.manifest.v1+prettyjws"
)

// accepted is the Accept header of requests for manifests. It lists the media types in containerd's
// order, because some registries send the first one that they can produce.
var accepted = http.Header{"Accept": {strings.Join([]string{
	dockerManifest, dockerList, v1.MediaTypeImageManifest, v1.MediaTypeImageIndex, "*/*",
}, ", ")}}

// Manifest is the manifest of an image, or an index of manifests.
type Manifest struct {
	From      From
	Digest    digest.Digest
	MediaType string // from the upstream's header or the stored content; may be empty
	Content   []byte
}

// Manifest returns a manifest by digest. It waits at most upstream.Patience for the upstream.
func (c *Cache) Manifest(ctx context.Context, q Query, blob digest.Digest) (Manifest, error) {
	if m, err := c.storedManifest(q.Repository, blob); err == nil || errors.Is(err, ErrBusy) {
		return m, err
	}
	if q.Stored {
		return Manifest{}, ErrNotHere
	}
	path := "manifests/" + blob.String()
	return ask(ctx, c, "manifest", http.MethodGet, q.Repository, path, func(ctx context.Context) (Manifest, error) {
		if m, err := c.storedManifest(q.Repository, blob); err == nil || errors.Is(err, ErrBusy) { // stored since the client looked
			return m, err
		}
		m, err := c.replicated(ctx, q.Repository, path, blob)
		if err != nil {
			m, err = c.manifest(ctx, q.Repository, path, blob)
		}
		if err == nil {
			c.soon(func() { c.keep(q.Repository, m) })
		}
		return m, err
	})
}

// storedManifest reads a manifest from the volume.
func (c *Cache) storedManifest(repository string, blob digest.Digest) (Manifest, error) {
	file, err := c.open(store.Link{Repository: repository, Manifest: true}, blob)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { _ = file.Close() }()
	if file.Size > largestManifest {
		return Manifest{}, fmt.Errorf("%s has %d bytes, more than the %d of the largest manifest", blob, file.Size, largestManifest)
	}
	if !c.large.TryAcquire(slotsOf(file.Size)) {
		return Manifest{}, ErrBusy
	}
	defer c.large.Release(slotsOf(file.Size))
	content, err := io.ReadAll(file)
	if err != nil {
		return Manifest{}, err
	}
	if !file.Checked {
		if err := c.options.Store.Check(blob, file.File); err != nil {
			return Manifest{}, err
		}
		c.used(blob, file.Size)
	}
	m := Manifest{From: FromVolume, Digest: blob, MediaType: typeOf(content), Content: content}
	if m.MediaType == "" || blob.Algorithm().FromBytes(content) != blob {
		return Manifest{}, fmt.Errorf("%s is not a manifest: %w", blob, ErrNotHere)
	}
	return m, nil
}

// manifest requests a manifest from the upstream.
func (c *Cache) manifest(ctx context.Context, repository, path string, wanted digest.Digest) (Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, manifestTime)
	defer cancel()
	response, err := c.options.Upstream.Do(ctx, http.MethodGet, repository, path, accepted)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { _ = response.Body.Close() }()
	return c.read(response, wanted)
}

// replicated returns a manifest from another replica, or ErrNotHere if none provides it.
func (c *Cache) replicated(ctx context.Context, repository, path string, wanted digest.Digest) (m Manifest, err error) {
	if !c.options.Replicas.Get(ctx, repository, path, accepted, func(response *http.Response) (err error) {
		m, err = c.read(response, wanted)
		return err
	}) {
		err = ErrNotHere
	}
	return m, err
}

// read reads a manifest and verifies it against its digest or, for a tag, against the digest in the
// upstream's header, if there is one.
func (c *Cache) read(response *http.Response, wanted digest.Digest) (Manifest, error) {
	if !c.large.TryAcquire(slotsOf(response.ContentLength)) {
		return Manifest{}, errors.Join(ErrBusy, upstream.ErrUnused)
	}
	defer c.large.Release(slotsOf(response.ContentLength))
	content, err := io.ReadAll(io.LimitReader(response.Body, largestManifest+1))
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	metrics.Pulled.WithLabelValues("manifest").Add(float64(len(content)))
	mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	m := Manifest{
		From: FromUpstream, Digest: cmp.Or(wanted, digest.Digest(response.Header.Get("Docker-Content-Digest"))),
		MediaType: strings.TrimSpace(mediaType), Content: content,
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && !m.isRight() {
		if decoded, err := decoder(encoding, bytes.NewReader(content)); err == nil {
			m.Content, _ = io.ReadAll(io.LimitReader(decoded, largestManifest+1))
		}
	}
	m.Digest = cmp.Or(m.Digest, digest.FromBytes(m.Content))
	switch {
	case len(m.Content) > largestManifest:
		return Manifest{}, fmt.Errorf("the manifest is larger than %d bytes", largestManifest)
	case wanted != "" && !m.isRight():
		return Manifest{}, fmt.Errorf("manifest %s: %w", wanted, errDamaged)
	case wanted == "" && (!m.isRight() || typeOf(m.Content) == ""):
		return Manifest{}, errNoManifest
	}
	return m, nil
}

// slotsOf returns how many slots a manifest of the given size needs. An unknown size (-1) needs
// none.
func slotsOf(size int64) int64 { return min(size/(LargeManifest+1), 1) }

// isRight reports whether the content matches the digest.
func (m Manifest) isRight() bool {
	return m.Digest.Validate() == nil && m.Digest.Algorithm().FromBytes(m.Content) == m.Digest
}

// isStorable reports whether the media type follows from the content, so that later clients get the
// same one.
func (m Manifest) isStorable() bool { return m.MediaType != "" && m.MediaType == typeOf(m.Content) }

// keep stores a manifest, and reports whether it succeeded. Clients receive the manifest anyway.
func (c *Cache) keep(repository string, m Manifest) bool {
	if !m.isStorable() {
		return false
	}
	room, ok := c.reserve(int64(len(m.Content)))
	defer room.release()
	err := errors.New("the volume is full")
	if ok {
		err = c.options.Store.Write(m.Digest, m.Content)
	}
	if err != nil {
		metrics.Unstored.WithLabelValues("manifest").Inc()
		slog.Warn("a manifest is not stored", "repository", repository, "blob", m.Digest, "error", err)
		return false
	}
	c.stored(store.Link{Repository: repository, Manifest: true}, m.Digest, int64(len(m.Content)))
	return true
}

// typeOf returns the media type of a manifest, or "" for other content. An OCI manifest need not
// contain its type (image-spec, manifest.md); an index is then recognized by its list of manifests.
func typeOf(content []byte) string {
	var m struct {
		SchemaVersion int    `json:"schemaVersion"`
		MediaType     string `json:"mediaType"`
		Manifests     first  `json:"manifests"`
		Config        first  `json:"config"`
		FSLayers      first  `json:"fsLayers"`
		Signatures    first  `json:"signatures"`
	}
	if json.Unmarshal(content, &m) != nil {
		return ""
	}
	isVersioned := m.SchemaVersion == 2 // artifacts, and some images and indexes, have no schemaVersion (distribution#2650)
	switch {
	case m.MediaType != "" && (isVersioned || m.SchemaVersion == 0 && (strings.Contains(m.MediaType, "artifact") || m.Config == '{' || m.Manifests == '[')):
		return m.MediaType
	case isVersioned && m.Manifests == '[':
		return v1.MediaTypeImageIndex
	case isVersioned && m.Config == '{': // an image may have no layers (moby#27568)
		return v1.MediaTypeImageManifest
	case m.SchemaVersion == 1 && m.FSLayers == '[' && m.Signatures == '[':
		return dockerSigned
	case m.SchemaVersion == 1 && m.FSLayers == '[':
		return dockerSchema1
	default:
		return ""
	}
}

// first is the first byte of a JSON value. Decoding all of a manifest of 4 MiB needs 200 MiB.
type first byte

// UnmarshalJSON implements json.Unmarshaler.
func (f *first) UnmarshalJSON(value []byte) error { *f = first(value[0]); return nil }
