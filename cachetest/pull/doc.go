// Package pull pulls images on nodes and finds the source of each object of an image: the store of
// a cache, the upstream through a cache, the upstream directly, or the node, which already had it.
//
// The evidence is the upstream's access log during the pull, and the content of the node's
// containerd before and after it. An object that is new on the node, and that no client fetched
// from the upstream, is a cache hit. The logs and metrics of caches are not used. Attribute, Report
// and Options must not access clusters.
package pull
