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

// fresh is how long the upstream's answer about a tag is reused: nodes that start the same pull at
// the same time share it.
const fresh = time.Second

// Tag returns the manifest to which the upstream's tag refers. While the upstream is away, Tag
// returns the manifest to which the tag last referred. Tag returns *upstream.RefusedError if the
// upstream refuses.
func (c *Cache) Tag(ctx context.Context, q Query, tag string) (Manifest, error) {
	t := store.TagName{Repository: q.Repository, Tag: tag}
	if q.Stored {
		m, err := c.last(t)
		if err != nil {
			err = ErrNotHere
		}
		return m, err
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
		// Ignore the cancellation of ctx: otherwise the replica would count as failed if the client left.
		// The call takes at most a second.
		last, missing = c.replicated(context.WithoutCancel(ctx), q.Repository, "manifests/"+tag, "")
	}
	if missing != nil {
		return Manifest{}, err
	}
	metrics.Stale.Inc()
	last.From = FromStale
	return last, nil
}

// forget removes a tag from the index and from the volume, and reports whether it succeeded.
func (c *Cache) forget(t store.TagName) bool {
	c.index.ForgetTag(t)
	err := c.options.Store.RemoveTag(t)
	if err != nil {
		slog.Warn("an old tag stays on the volume", "error", err)
	}
	return err == nil
}

// resolve asks the upstream for the manifest of a tag, unless its last answer is fresh. If the
// tag's last manifest is stored, a HEAD request suffices to learn that the tag has not moved.
func (c *Cache) resolve(ctx context.Context, t store.TagName) (Manifest, error) {
	path, asked := "manifests/"+t.Tag, c.now()
	if last, err := c.last(t); errors.Is(err, ErrBusy) {
		return Manifest{}, err
	} else if err == nil {
		if c.index.Fresh(t, last.Digest, asked, fresh) {
			return last, nil
		}
		response, err := c.options.Upstream.Do(ctx, http.MethodHead, t.Repository, path, accepted)
		if err == nil {
			_ = response.Body.Close()
			if response.Header.Get("Docker-Content-Digest") == last.Digest.String() {
				c.soon(func() { c.confirm(t, last.Digest, asked) })
				return last, nil
			}
		} else if upstream.Unanswered(err) {
			return Manifest{}, err
		}
	}
	m, err := c.manifest(ctx, t.Repository, path, "")
	if err == nil {
		c.soon(func() {
			if c.keep(t.Repository, m) {
				c.confirm(t, m.Digest, asked)
			} else {
				c.forget(t) // it is outdated
			}
		})
	}
	return m, err
}

// last returns the manifest to which the tag last referred.
func (c *Cache) last(t store.TagName) (Manifest, error) {
	known, err := c.options.Store.Tag(t)
	if err != nil {
		return Manifest{}, err
	}
	return c.storedManifest(t.Repository, known)
}

// confirm records the manifest to which the upstream's tag refers. asked is the time of the
// request: so a slow answer is not fresh, and does not replace the answer to a later request.
func (c *Cache) confirm(t store.TagName, to digest.Digest, asked time.Time) {
	if to = c.index.Confirm(t, to, asked); to == "" {
		c.forget(t) // the manifest already has the maximum number of tags
	} else if err := c.options.Store.SetTag(t, to, asked); err != nil {
		slog.Warn("a tag is not stored", "error", err)
	}
}
