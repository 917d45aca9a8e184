// Package cache decides what happens to a request: what is stored is served from the volume, what
// is not is fetched from the upstream, and a tag is asked for at the upstream first. When the
// upstream is away, tags are served as they were last confirmed. docs/cache.md has the states of a
// blob and of a tag.
//
// It composes packages store, index and upstream. It does not know HTTP servers.
package cache
