// Package cache decides what happens to a request: what is stored is served from the volume, what
// is not is fetched from the upstream, and a tag is asked for at the upstream first. When the
// upstream is away, tags are served as they were last confirmed.
//
// It composes packages store, index, upstream and fetch. It does not know distribution; package
// namespace offers it to distribution's HTTP layer.
package cache
