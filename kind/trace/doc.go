// Package trace shows the requests of pulls of one image: from nodes to caches and the upstream,
// and from caches to the upstream. It reads the journal of containerd, the logs of caches, and the
// access logs of upstreams. Reader and Order only parse and sort.
package trace
