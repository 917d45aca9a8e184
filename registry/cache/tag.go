package cache

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// fresh is how long the upstream's word about a tag counts: nodes that begin the same pull at the
// same time share it.
const fresh = time.Second

// Tag returns the manifest of a tag: what the upstream says now, or said last if it is away.
func (c *Cache) Tag(ctx context.Context, t store.TagName) (Manifest, error) {
	m, err := ask(ctx, c, "manifest", t.Repository, "manifests/"+t.Tag, func(ctx context.Context) (Manifest, error) {
		return c.resolve(ctx, t)
	})
	if err == nil || c.refused(t, err) {
		return m, err
	}
	last, missing := c.last(ctx, t)
	if missing != nil && c.options.Replicas != nil {
		last, missing = c.download(ctx, c.options.Replicas, t.Repository, t.Tag)
	}
	if missing != nil {
		return Manifest{}, err
	}
	metrics.Stale.Inc()
	last.From = FromStale
	return last, nil
}

// refused reports whether the upstream says that the tag is not there, or not for everybody.
// Credentials that the upstream refuses may be accepted again.
func (c *Cache) refused(t store.TagName, err error) bool {
	refused, ok := errors.AsType[*upstream.StatusError](err)
	if !ok {
		return false
	}
	switch refused.Status {
	case http.StatusNotFound:
		if err := c.options.Store.RemoveTag(t); err != nil {
			slog.Warn("a tag that the upstream does not have any more stays on the volume", "error", err)
		}
		return true
	case http.StatusUnauthorized, http.StatusForbidden:
		return !c.options.Credentials
	}
	return false
}

// resolve asks the upstream, unless it has just been asked. If the volume has what the tag referred
// to, a HEAD request is enough to learn that this has not changed.
func (c *Cache) resolve(ctx context.Context, t store.TagName) (Manifest, error) {
	if last, err := c.last(ctx, t); err == nil {
		if c.now().Sub(c.index.Confirmed(t)) < fresh {
			return last, nil
		}
		response, err := c.request(ctx, http.MethodHead, t.Repository, "manifests/"+t.Tag)
		if err != nil {
			return Manifest{}, err
		}
		if err := response.Body.Close(); err != nil {
			return Manifest{}, err
		}
		if response.Header.Get("Docker-Content-Digest") == last.Digest.String() {
			c.confirm(t, last.Digest)
			return last, nil
		}
	}
	m, err := c.download(ctx, c.options.Upstream, t.Repository, t.Tag)
	if err == nil && !m.unstored {
		c.confirm(t, m.Digest)
	}
	return m, err
}

// last returns the manifest to which the tag referred when the upstream was last asked.
func (c *Cache) last(ctx context.Context, t store.TagName) (Manifest, error) {
	known, err := c.options.Store.Tag(t)
	if err != nil {
		return Manifest{}, err
	}
	return c.stored(ctx, t.Repository, known)
}

func (c *Cache) confirm(t store.TagName, blob digest.Digest) {
	now := c.now()
	c.index.Confirm(t, blob, now)
	if err := c.options.Store.SetTag(t, blob, now); err != nil {
		slog.Warn("a tag is not stored", "error", err)
	}
}
