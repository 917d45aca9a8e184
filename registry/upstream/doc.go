// Package upstream asks the upstream registry and its token server. Each phase of a request has a
// bound: a client of the cache waits at most 1.5 s for the header of an answer. A breaker answers
// at once while the upstream is known to be away.
//
// Tokens come from go-containerregistry's transport. containerd's authorizer would be the other
// choice: it keeps a failed token request for ever, and lets all requests wait for the first one's
// context.
//
// The package stores nothing and knows no digest.
package upstream
