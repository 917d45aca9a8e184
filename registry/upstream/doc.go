// Package upstream asks the upstream registry, its token servers, and where they redirect to. Each
// phase of a request has a bound, and each answer is one of three verdicts: served, refused
// (RefusedError) or away (AwayError). What is away is remembered, and not asked at once again.
//
// Tokens come from containerd's own client (core/remotes/docker/auth). Its authorizer would keep a
// failed token request for ever, and let all requests wait for the first one's context, so what
// remembers tokens is ours.
//
// The package stores nothing and knows no digest.
package upstream
