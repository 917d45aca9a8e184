// Package replica asks the other replicas of a cache for content by digest. A replica is an
// upstream that is asked first, with short bounds. What it sends counts only after its digest was
// checked.
//
// The package stores nothing, and does not know the upstream.
package replica
