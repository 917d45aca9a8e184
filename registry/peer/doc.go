// Package peer asks the other replicas of a cache for what they have stored, before the upstream is
// asked. A replica that is lost or slow costs 500 ms once in ten seconds.
//
// The package is a layer above package upstream. It stores nothing and trusts no content: package
// fetch checks digests.
package peer
