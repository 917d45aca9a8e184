// Package upstream asks the upstream registry, its token servers, and where they redirect to. Each
// phase of a request has a bound, and each answer is one of three verdicts: served, refused
// (RefusedError) or away (AwayError). What is away is remembered, and not asked at once again.
//
// The package stores nothing and knows no digest.
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
	// Patience is how long a client of the cache waits for the upstream with its token server.
	Patience = 1500 * time.Millisecond
	// beforePatience is how long before the end of Patience a late answer is remembered, so that no
	// other client asks again at the same moment.
	beforePatience = 50 * time.Millisecond
	// longest is how long they may take: what is later than Patience is there for the next client.
	longest = 30 * time.Second
)

// named names the cache to upstreams and token servers. Firewalls refuse a request without Accept.
var named = http.Header{"User-Agent": {"registry-cache/1"}, "Accept": {"*/*"}}

// Options say which upstream there is.
type Options struct {
	URL *url.URL // <scheme>://<host>[:<port>]
	// Credentials returns the username and password for the upstream. It is told a password that
	// the upstream has refused, if that is why it is called. It is nil without credentials.
	Credentials func(ctx context.Context, refused string) (username, password string, err error)
	Roots       *x509.CertPool
	Dial        Dial // or nil
}

// Client asks one upstream. Its methods may be called at the same time.
type Client struct {
	url      *url.URL
	http     *http.Client
	wires    wires
	tokens   *authenticator
	failures *failures
}

// New returns a client. It sends nothing yet. At the end of ctx it closes idle connections and
// probes no more.
func New(ctx context.Context, o Options) *Client {
	c := &Client{url: o.URL.JoinPath("/"), wires: wires{newTransport(o.Roots, o.Dial)}}
	c.failures = newFailures(ctx, c.root)
	context.AfterFunc(ctx, c.wires.CloseIdleConnections)
	known, _ := lru.New[string, *authorization](mostTokens) // fails for a size of 0
	c.tokens = &authenticator{wires: c.wires, upstream: o.URL, credentials: o.Credentials, failures: c.failures, known: known}
	c.http = &http.Client{Transport: c.tokens}
	return c
}

// Away returns an *AwayError while a request for a path below the repository would fail at once.
func (c *Client) Away(repository, path string) error {
	return c.failures.check(repository+" "+path, repository) // <name>/manifests/<tag> can be a repository, too
}

// object is what the context of a request says about it.
type object struct {
	repository string
	token      atomic.Pointer[string] // the key of the token for which the request waits, or nil
}

type objectKey struct{}

// Do sends a request for a path below the repository, such as "manifests/v1", and returns the
// answer, 2xx but 204, when its header is there, after 30 seconds at most. Other errors than
// *RefusedError and *AwayError say that ctx has ended. The body must be closed; it ends with an
// error when the upstream is too slow.
//
// A HEAD request that is answered with an error says nothing about the object: some registries
// answer GET only.
func (c *Client) Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	if err := c.Away(repository, path); err != nil {
		return nil, err
	}
	name, o := repository+" "+path, &object{repository: repository}
	late := time.AfterFunc(Patience-beforePatience, func() {
		if key := o.token.Load(); key != nil {
			c.tokens.asking.Forget(*key) // the next request may have more luck
			c.failures.add(repository, &AwayError{cause: ErrLate})
		} else {
			c.failures.add(name, &AwayError{cause: ErrLate})
		}
		c.wires.CloseIdleConnections()
	})
	defer late.Stop()
	response, err := c.send(context.WithValue(ctx, objectKey{}, o), method, repository, path, header)
	if err != nil && context.Cause(ctx) != nil {
		return nil, err // the client gave up, which says nothing about the upstream
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

// send gives up when the header is not there after longest. Its error is a verdict.
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
	return nil, &AwayError{cause: cmp.Or(context.Cause(ctx), errors.Unwrap(err))} // without the URL: it can be signed
}

// root asks for the root of the API, which every registry answers (distribution-spec, end-1).
func (c *Client) root(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, ErrLate)
	defer cancel()
	response, err := c.send(ctx, http.MethodGet, "", "/", nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
