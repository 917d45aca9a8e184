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

// Tag returns the manifest of a tag: what the upstream says now, or said last if it is away. A
// refusal is what it says now.
func (c *Cache) Tag(ctx context.Context, q Query, tag string) (Manifest, error) {
	t := store.TagName{Repository: q.Repository, Tag: tag}
	if q.Stored {
		return c.last(t)
	}
	m, err := ask(ctx, c, "manifest", http.MethodGet, q.Repository, "manifests/"+tag, func(ctx context.Context) (Manifest, error) {
		return c.resolve(ctx, t)
	})
	if err == nil || errors.Is(err, context.Canceled) {
		return m, err
	}
	if refused, ok := errors.AsType[*upstream.RefusedError](err); ok {
		if refused.Status == http.StatusNotFound {
			c.forget(t)
		}
		return m, err
	}
	last, missing := c.last(t)
	if missing != nil {
		var found bool
		if last, found = c.replicated(ctx, q.Repository, "manifests/"+tag, ""); !found {
			return Manifest{}, err
		}
	}
	metrics.Stale.Inc()
	last.From = FromStale
	return last, nil
}

// forget removes a tag that does not refer any more to what is stored, and reports whether it has.
func (c *Cache) forget(t store.TagName) bool {
	c.index.ForgetTag(t)
	err := c.options.Store.RemoveTag(t)
	if err != nil {
		slog.Warn("an old tag stays on the volume", "error", err)
	}
	return err == nil
}

// resolve asks the upstream, unless it has just been asked. If the volume has what the tag referred
// to, a HEAD request is enough to learn that this has not changed.
func (c *Cache) resolve(ctx context.Context, t store.TagName) (Manifest, error) {
	path := "manifests/" + t.Tag
	if last, err := c.last(t); err == nil {
		if c.index.Fresh(t, last.Digest, c.now(), fresh) {
			return last, nil
		}
		response, err := c.options.Upstream.Do(ctx, http.MethodHead, t.Repository, path, accepted)
		if err == nil {
			_ = response.Body.Close()
			if response.Header.Get("Docker-Content-Digest") == last.Digest.String() {
				c.soon(func() { c.confirm(t, last.Digest) })
				return last, nil
			}
		} else if upstream.Unanswered(err) {
			return Manifest{}, err
		}
	}
	m, err := c.manifest(ctx, t.Repository, path, "")
	if err != nil {
		return m, err
	}
	c.soon(func() {
		if c.keep(t.Repository, m) {
			c.confirm(t, m.Digest)
		} else {
			c.forget(t) // what is stored is not what the upstream says
		}
	})
	return m, nil
}

// last returns the manifest to which the tag referred when the upstream was last asked.
func (c *Cache) last(t store.TagName) (Manifest, error) {
	known, err := c.options.Store.Tag(t)
	if err != nil {
		return Manifest{}, err
	}
	return c.storedManifest(t.Repository, known)
}

func (c *Cache) confirm(t store.TagName, to digest.Digest) {
	now := c.now()
	if !c.index.Confirm(t, to, now) {
		c.forget(t) // its manifest has so many tags that nobody needs this one in an outage
		return
	}
	if err := c.options.Store.SetTag(t, to, now); err != nil {
		slog.Warn("a tag is not stored", "error", err)
	}
}
