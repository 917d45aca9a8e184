// Package pull pulls images on nodes and finds who served each object of an image: a cache from its
// store, a cache that fetched it from the upstream, the upstream directly, or nobody because the
// node already had it.
//
// The evidence is the upstream's access log during the pull, and the content of the node's
// containerd before and after. An object that was not on the node before, is there now, and was not
// fetched from the upstream by anyone must come from the store of a cache: it is a cache hit. The
// logs and metrics of caches are not used. Attribute, Report and Options must not know clusters.
package pull
