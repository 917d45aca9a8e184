// Package upstream asks the upstream registry and its token server. Each phase of a request has a
// bound, so a client of the cache never waits longer than that, and a breaker answers at once while
// the upstream is known to be away.
//
// Tokens come from go-containerregistry's transport. containerd's authorizer would be the other
// choice: it keeps a failed token request for ever, and lets all requests wait for the first one's
// context.
//
// The package stores nothing and knows no digest.
package upstream
