// Package trace shows who asked whom during pulls of one image: a node its caches and the upstream, a cache the upstream. It
// reads what the participants log of themselves: containerd's journal, distribution's log in the caches, the upstreams' access
// logs.
//
// It is made of functions of lines. It must not know where logs come from, see package logs.
package trace
