// Package peer asks the other replicas of a cache for what they have stored, before the upstream is
// asked. A replica that is lost or slow costs at most 500 ms, once every ten seconds.
//
// The package is a layer above package upstream. It stores nothing and trusts no content: packages
// fetch and cache check digests.
package peer
