// Package pull tells who served each part of an image that a node pulled: a cache from its store, a cache that had to ask
// the upstream for it, the upstream itself, or nobody because the node had it.
//
// The evidence is what the upstream's access log says between two readings, and what the node's containerd stored before and
// after. Both together decide: a part that was not on the node before, that is there now, and that nobody fetched from the
// upstream meanwhile can only have come from a cache, so it is a cache hit. No cache is asked whether it was one.
//
// Planning, attributing and printing are functions of values. Nodes are reached by the one method of Node; the package must
// not know how clusters, upstreams or caches are run.
package pull
