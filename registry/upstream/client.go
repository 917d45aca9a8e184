package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	// Patience is how long a client of the cache waits for the upstream and its token server
	// together.
	Patience = 1500 * time.Millisecond
	// beforePatience is how long before the end of Patience a late answer is remembered, so that no
	// other client asks again at the same moment.
	beforePatience = 50 * time.Millisecond
	// longest is how long they may take: what is later than Patience is there for the next client.
	longest = 30 * time.Second
	// redirects is how many redirects are followed, as in net/http.
	redirects = 10
	userAgent = "registry-cache/1"
)

// Options say which upstream there is.
type Options struct {
	URL *url.URL // <scheme>://<host>[:<port>]
	// Credentials returns the username and password for the upstream. It is nil without
	// credentials.
	Credentials func(context.Context) (username, password string, err error)
	// Refused is told a password that the upstream has refused. It may be nil.
	Refused func(password string)
	Roots   *x509.CertPool
	Dial    Dial // or nil
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
	if o.Dial == nil {
		o.Dial = dial
	}
	c := &Client{url: o.URL, wires: newWires(o.Roots, o.Dial)}
	c.failures = newFailures(ctx, c.root)
	context.AfterFunc(ctx, c.wires.closeIdle)
	c.tokens = newAuthenticator(c.wires, o, c.failures)
	c.http = &http.Client{Transport: c.tokens, CheckRedirect: withoutCredentials}
	return c
}

// withoutCredentials drops the token when a redirect leaves the host, also for a subdomain: a store
// with signed URLs refuses it.
func withoutCredentials(request *http.Request, earlier []*http.Request) error {
	if len(earlier) >= redirects {
		return fmt.Errorf("more than %d redirects", redirects)
	}
	request.Header.Del("Authorization") // the authenticator adds that of the host
	request.Header.Del("Referer")       // the URL before may be signed
	return nil
}

// Away returns an *AwayError while a request for a path below the repository would fail at once.
func (c *Client) Away(repository, path string) error {
	return c.failures.check(repository+"/"+path, repository)
}

// Do sends a request for a path below the repository, such as "manifests/v1", and returns the
// answer, 200 or 206, when its header is there, after 30 seconds at most. Other errors than
// *RefusedError and *AwayError say that ctx has ended. The body must be closed; it ends with an
// error when the upstream is too slow.
//
// A HEAD request that is answered with an error says nothing about the object: some registries
// answer GET only.
func (c *Client) Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	if err := c.Away(repository, path); err != nil {
		return nil, err
	}
	name := repository + "/" + path
	forToken := new(atomic.Value)
	ctx = context.WithValue(ctx, waitsForToken{}, forToken)
	late := time.AfterFunc(Patience-beforePatience, func() {
		if key, _ := forToken.Load().(string); key != "" {
			c.tokens.asking.Forget(key) // the next request may have more luck
			c.failed(repository, &AwayError{noToken: true, cause: ErrLate})
		} else {
			c.failed(name, &AwayError{cause: ErrLate})
		}
		c.wires.closeIdle()
	})
	defer late.Stop()
	response, err := c.send(ctx, method, repository, path, header)
	if err != nil && context.Cause(ctx) != nil {
		return nil, err // the client gave up, which says nothing about the upstream
	}
	if err == nil {
		err = verdict(response)
	}
	away, isAway := errors.AsType[*AwayError](err)
	switch {
	case !isAway:
		c.failures.forget(name)
		c.failures.forget(repository)
	case away.noToken:
		c.failed(repository, away)
	case method != http.MethodHead || !away.answered:
		c.failed(name, away)
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

// waitsForToken is the key of an *atomic.Value with what the authenticator waits for.
type waitsForToken struct{}

func (c *Client) failed(name string, away *AwayError) {
	c.failures.add(name, away)
	c.failures.suspect()
}

// send gives up when the header is not there after longest. Its error is a verdict, unless ctx has
// ended.
func (c *Client) send(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	least := int64(slowest)
	if ctx.Value(passing{}) != nil {
		least = 1
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, repositoryKey{}, repository))
	request, err := http.NewRequestWithContext(ctx, method, c.url.JoinPath("v2", repository, path).String(), http.NoBody)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", userAgent)
	ended := time.AfterFunc(longest, func() { cancel(ErrLate) })
	response, err := c.http.Do(request)
	if !ended.Stop() && err == nil {
		err = errors.Join(ErrLate, response.Body.Close())
	}
	if err == nil {
		response.Body = &pacedBody{ReadCloser: response.Body, cancel: cancel, least: least, left: idle}
		return response, nil
	}
	defer cancel(nil)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return nil, refused
	}
	if away, ok := errors.AsType[*AwayError](err); ok {
		return nil, away
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, &AwayError{cause: withoutURL(err)}
}

// root asks for the root of the API, which every registry answers (distribution-spec, end-1).
func (c *Client) root(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, ErrLate)
	defer cancel()
	response, err := c.send(ctx, http.MethodGet, "", "/", nil)
	if err != nil {
		return err
	}
	return errors.Join(verdict(response), response.Body.Close())
}

// withoutURL drops the URL from an error of net/http, because that of a redirect can be signed.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		if target, invalid := url.Parse(failed.URL); invalid == nil {
			return fmt.Errorf("%s %s: %w", failed.Op, target.Host, failed.Err)
		}
		return failed.Err
	}
	return err
}
