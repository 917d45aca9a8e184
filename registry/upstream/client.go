// Package upstream asks the upstream registry, its token servers, and redirect targets. Each phase
// of a request has a timeout, and each answer gets one of three verdicts: served, refused
// (RefusedError) or away (AwayError). After an AwayError, requests fail at once for a while.
//
// The package neither stores content nor verifies digests.
package upstream

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// Patience is how long a client of the cache waits for the upstream and its token server.
	Patience = 1500 * time.Millisecond
	// beforePatience is how long before the end of Patience a missing answer counts as a failure. So
	// the upstream is not asked again when clients give up and retry.
	beforePatience = 50 * time.Millisecond
	// longest is the timeout for a header and for a token. A late answer serves the next clients.
	longest = 30 * time.Second
)

// named contains the headers of every request. Some firewalls refuse requests without Accept.
var named = http.Header{"User-Agent": {"registry-cache/1"}, "Accept": {"*/*"}}

// Options configure a Client.
type Options struct {
	URL *url.URL // <scheme>://<host>[:<port>]
	// Credentials returns the username and password for the upstream. The argument is the password
	// that the upstream has just refused, or empty. Credentials may be nil.
	Credentials func(ctx context.Context, refused string) (username, password string, err error)
	Roots       *x509.CertPool
	Dial        Dial // may be nil
}

// Client sends requests to one upstream. It is safe for concurrent use.
type Client struct {
	url      *url.URL
	http     *http.Client
	wires    wires
	tokens   *authenticator
	failures *failures
}

// New returns a client without sending a request. When ctx is done, the client closes idle
// connections and stops probing.
func New(ctx context.Context, o Options) *Client {
	c := &Client{url: o.URL.JoinPath("/"), wires: wires{newTransport(o.Roots, o.Dial)}}
	c.failures = newFailures(ctx, c.root)
	context.AfterFunc(ctx, c.wires.CloseIdleConnections)
	known, _ := lru.New[string, *authorization](mostTokens) // lru.New returns an error only for a size of 0
	c.tokens = &authenticator{wires: c.wires, upstream: o.URL, credentials: o.Credentials, failures: c.failures, known: known}
	c.http = &http.Client{Transport: c.tokens}
	return c
}

// Away returns an *AwayError while a request for the path would fail at once.
func (c *Client) Away(repository, path string) error {
	return c.failures.check(repository+" "+path, repository) // <name>/manifests/<tag> may also be the name of a repository
}

// object describes the object of a request. It is a value of the request's context.
type object struct {
	repository string
	token      atomic.Pointer[string] // the key of the token that the request waits for, or nil
}

type objectKey struct{}

// Do requests a path below the repository, such as "manifests/v1". It returns an answer with a
// status of 2xx except 204 as soon as its header has arrived, within at most 30 seconds. Its error
// is *RefusedError or *AwayError, unless ctx is done. The caller must close the body, whose Read
// fails if the upstream is too slow.
//
// An error answer to HEAD does not count as a failure: some registries answer only GET.
func (c *Client) Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	if err := c.Away(repository, path); err != nil {
		return nil, err
	}
	name, o := repository+" "+path, &object{repository: repository}
	late := time.AfterFunc(Patience-beforePatience, func() {
		if key := o.token.Load(); key != nil {
			c.tokens.asking.Forget(*key) // the next request asks for a token again
			c.failures.add(repository, &AwayError{cause: ErrLate})
		} else {
			c.failures.add(name, &AwayError{cause: ErrLate})
		}
		c.wires.CloseIdleConnections()
	})
	defer late.Stop()
	response, err := c.send(context.WithValue(ctx, objectKey{}, o), method, repository, path, header)
	if err != nil && context.Cause(ctx) != nil {
		return nil, err // the client gave up, so the upstream has not failed
	}
	away, isAway := errors.AsType[*AwayError](err)
	switch {
	case !isAway:
		c.failures.forget(name, repository)
	case away.noToken:
		c.failures.add(repository, away)
	case method != http.MethodHead || away.status == 0:
		c.failures.add(name, away)
	}
	return response, err
}

// send sends a request, and waits for the header for at most longest. Its error is *RefusedError or
// *AwayError.
func (c *Client) send(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := time.AfterFunc(longest, func() { cancel(ErrLate) })
	defer ended.Stop()
	request := &http.Request{Method: method, URL: c.url.JoinPath("v2", repository, path), Header: named.Clone()}
	maps.Copy(request.Header, header)
	response, err := c.http.Do(request.WithContext(ctx))
	if err == nil {
		body := &pacedBody{ReadCloser: response.Body, cancel: cancel, least: slowest, period: idle, left: idle}
		if ctx.Value(passing{}) != nil {
			body.least = 1
		}
		response.Body = body
		return response, verdict(response)
	}
	defer cancel(nil)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return nil, refused
	}
	if away, ok := errors.AsType[*AwayError](err); ok {
		return nil, away
	}
	return nil, &AwayError{cause: cmp.Or(context.Cause(ctx), errors.Unwrap(err))} // without the URL, which may be signed
}

// root requests the root of the API, which every registry answers (distribution-spec, end-1).
func (c *Client) root(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, ErrLate)
	defer cancel()
	response, err := c.send(ctx, http.MethodGet, "", "/", nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
